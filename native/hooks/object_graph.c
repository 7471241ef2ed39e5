#include "hooks/object_graph.h"

#include <errno.h>
#include <time.h>

#include "hooks/copy_memory.h"
#include "hooks/object_names.h"
#include "hooks/object_sizes.h"
#include "hooks/python_layout.h"
#include "probes/address_numbers.h"
#include "probes/graph_output.h"
#include "probes/process_copy.h"

enum {
  MAX_OBJECTS = 1 << 24,
  MAX_TYPES = 1 << 20,
  MAX_FIELDS = 1 << 15,
  OBJECTS_PER_LOOK = 1 << 10, /* At the clock. */

  /* Numbers of objects that the walk makes, above those of real ones. */
  LEFT_OUT = 1 << 28,
  FIRST_MADE,
  /* Fields. */
  ANY = 1,
  KEY,
  LAST_FIXED_FIELD = KEY,
};

/* Types of objects that the walk makes, in place of addresses. */
enum { NO_TYPE, LEFT_OUT_TYPE, MORE_TYPE, LAST_MADE_TYPE = MORE_TYPE };

static struct walk {
  struct st_address_numbers objects, types, fields;
  ST_MAPPED_ARRAY(struct st_object_size) sizes; /* By the type's number - 1. */
  struct st_graph_output out;
  struct st_graph_reference references[ST_GRAPH_MAX_REFERENCES];
  uint32_t reference_count;
  struct {
    uint32_t object, type;
    uint64_t size;
  } owner; /* Of the references. */
  uint32_t made, visited;
  uint64_t end_ns;
  bool has_left_out;
} walk;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t type_number(struct walk* w, uint64_t key) {
  uint32_t number = st_number_of(&w->types, key);
  return number ? number : st_number_of(&w->types, LEFT_OUT_TYPE);
}

/* Writes the owner with the references so far. */
static void write_owner(struct walk* w) {
  st_graph_object(&w->out, w->owner.object, w->owner.type, w->owner.size,
                  w->references, w->reference_count);
  w->reference_count = 0;
}

static void add_number(struct walk* w, uint32_t object, uint32_t field) {
  w->references[w->reference_count++] =
      (struct st_graph_reference){object, field};
}

/* Gives the owner a part, which gets the next references. */
static void split(struct walk* w) {
  uint32_t more = w->made++;
  add_number(w, more, ANY);
  write_owner(w);
  w->owner.object = more;
  w->owner.type = type_number(w, MORE_TYPE);
  w->owner.size = 0;
}

static void add_reference(struct walk* w, PyObject* o, uint32_t field) {
  uint32_t number = st_number_of(&w->objects, (uint64_t)(uintptr_t)o);
  if (w->reference_count == ST_GRAPH_MAX_REFERENCES - 1)
    split(w);
  w->has_left_out |= !number;
  add_number(w, number ? number : LEFT_OUT, field);
}

static int visit(PyObject* o, void* self) {
  if (o)
    add_reference(self, o, ANY);
  return 0;
}

/* Names are identifiers, which the interpreter interns; other keys are data. */
static uint32_t field_of(struct walk* w, PyObject* key) {
  if (!PyUnicode_CheckExact(key) || !PyUnicode_CHECK_INTERNED(key))
    return ANY;
  uint32_t number = st_number_of(&w->fields, (uint64_t)(uintptr_t)key);
  return number ? number + LAST_FIXED_FIELD : ANY;
}

static void add_items(struct walk* w, PyObject* dict) {
  PyObject *key, *value;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &i, &key, &value);) {
    add_reference(w, key, KEY);
    add_reference(w, value, field_of(w, key));
  }
}

static void add_references(struct walk* w, PyObject* o) {
  traverseproc traverse = Py_TYPE(o)->tp_traverse;
  if (PyDict_CheckExact(o))
    add_items(w, o);
  else if (traverse && PyObject_IS_GC(o))
    traverse(o, visit, w);
}

static uint64_t size_of(struct walk* w, PyObject* o) {
  uint32_t number = type_number(w, (uint64_t)(uintptr_t)Py_TYPE(o));
  while (w->sizes.size < number) {
    if (!ST_MAPPED_RESERVE(&w->sizes))
      return 0;
    w->sizes.data[w->sizes.size++].size_of = NULL;
  }
  struct st_object_size* s = &w->sizes.data[number - 1];
  if (!s->size_of)
    *s = st_object_size_of(Py_TYPE(o));
  return st_object_size(s, o);
}

static void write_object(struct walk* w, uint32_t number) {
  PyObject* o =
      (PyObject*)(uintptr_t)w->objects.entries.data[number - 1].address;
  PyObject* type = PyModule_Check(o) ? o : (PyObject*)Py_TYPE(o);
  w->owner.object = number;
  w->owner.size = size_of(w, o);
  w->owner.type = type_number(w, (uint64_t)(uintptr_t)type);
  add_references(w, o);
  write_owner(w);
}

/* After the time, no further objects are found. */
static void look_at_time(struct walk* w) {
  if (++w->visited % OBJECTS_PER_LOOK == 0 && now_ns() > w->end_ns)
    w->objects.max = (uint32_t)w->objects.entries.size;
}

/* Writes the objects from a number on, and those that they refer to. */
static void write_objects(struct walk* w, uint32_t from) {
  for (; from <= w->objects.entries.size && !w->out.failed; from++) {
    write_object(w, from);
    look_at_time(w);
  }
}

static void add_root(struct walk* w, PyObject* o, uint32_t kind) {
  uint32_t number = st_number_of(&w->objects, (uint64_t)(uintptr_t)o);
  if (number)
    st_graph_root(&w->out, number, kind);
}

static void add_modules(struct walk* w) {
  PyObject *name, *module, *modules = PyImport_GetModuleDict();
  add_root(w, modules, ST_ROOT_STICKY_CLASS);
  for (Py_ssize_t i = 0; PyDict_Next(modules, &i, &name, &module);)
    add_root(w, module, ST_ROOT_STICKY_CLASS);
}

/* Writes a call as an object that refers to its variables. */
static void add_call(struct walk* w, struct st_stack_frame frame) {
  w->owner.object = w->made++;
  w->owner.type = type_number(w, frame.code);
  w->owner.size = 0;
  st_graph_root(&w->out, w->owner.object, ST_ROOT_JAVA_FRAME);
  for (int i = 0; i < st_python_variables(frame); i++) {
    PyObject *name, *value = st_python_variable(frame, i, &name);
    if (value)
      add_reference(w, value, field_of(w, name));
  }
  write_owner(w);
}

static void add_calls(struct walk* w) {
  PyThreadState* t = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; t; t = PyThreadState_Next(t)) {
    struct st_stack_frame frame = st_python_frame(t);
    for (; frame.address; frame = st_python_caller(frame))
      if (st_python_variables(frame))
        add_call(w, frame);
  }
}

/* Numbers an object without a reference to it. */
static void add_tracked(PyObject* o, void* self) {
  struct walk* w = self;
  uint32_t number = st_number_of(&w->objects, (uint64_t)(uintptr_t)o);
  if (number)
    w->objects.entries.data[number - 1].seen--;
}

static void add_what_c_holds(struct walk* w) {
  uint32_t first = (uint32_t)w->objects.entries.size + 1;
  st_python_tracked(add_tracked, w);
  write_objects(w, first);
  for (uint32_t i = first; i <= w->objects.entries.size; i++) {
    const struct st_numbered* e = &w->objects.entries.data[i - 1];
    if (Py_REFCNT((PyObject*)(uintptr_t)e->address) > (Py_ssize_t)e->seen)
      st_graph_root(&w->out, i, ST_ROOT_JNI_GLOBAL);
  }
}

static void write_left_out(struct walk* w) {
  if (w->has_left_out)
    st_graph_object(&w->out, LEFT_OUT, type_number(w, LEFT_OUT_TYPE), 0, NULL,
                    0);
}

static void write_types(struct walk* w) {
  static const char* const kMade[] = {"", "[objects left out]",
                                      "[more references]"};
  char name[ST_GRAPH_MAX_NAME];
  for (uint32_t i = 1; i <= w->types.entries.size; i++) {
    uint64_t key = w->types.entries.data[i - 1].address;
    if (key <= LAST_MADE_TYPE)
      st_graph_type(&w->out, i, kMade[key], strlen(kMade[key]));
    else
      st_graph_type(
          &w->out, i, name,
          st_object_type_name((PyObject*)(uintptr_t)key, name, sizeof name));
  }
}

static void write_fields(struct walk* w) {
  char name[ST_GRAPH_MAX_NAME];
  st_graph_field(&w->out, ANY, "[*]", 3);
  st_graph_field(&w->out, KEY, "[key]", 5);
  for (uint32_t i = 1; i <= w->fields.entries.size; i++) {
    PyObject* key = (PyObject*)(uintptr_t)w->fields.entries.data[i - 1].address;
    st_graph_field(&w->out, i + LAST_FIXED_FIELD, name,
                   st_object_field_name(key, name, sizeof name));
  }
}

static void run(void* self) {
  struct walk* w = self;
  st_copy_memory_install();
  if (!st_graph_output_init(&w->out, w->out.fd))
    return;
  add_calls(w);
  add_modules(w);
  write_objects(w, 1);
  add_what_c_holds(w);
  write_left_out(w);
  write_types(w);
  write_fields(w);
  st_graph_finish(&w->out);
}

int st_object_graph_start(const struct st_object_graph_options* options) {
  if (!st_object_sizes_init() || !st_object_names_init())
    return -1;
  walk.out.fd = options->fd;
  walk.objects.max = options->max_objects;
  walk.types.max = MAX_TYPES;
  walk.fields.max = MAX_FIELDS;
  walk.made = FIRST_MADE;
  walk.end_ns = now_ns() + options->time_ns;
  int pid = st_process_copy(run, &walk, options->fd);
  if (pid < 0)
    PyErr_SetFromErrno(PyExc_OSError);
  return pid;
}

static PyObject* object_graph(PyObject* Py_UNUSED(module), PyObject* args) {
  struct st_object_graph_options o;
  unsigned long long time_ns;
  if (!PyArg_ParseTuple(args, "iIK:object_graph", &o.fd, &o.max_objects,
                        &time_ns))
    return NULL;
  o.time_ns = time_ns;
  if (o.fd < 0 || o.max_objects > MAX_OBJECTS) {
    PyErr_SetString(PyExc_ValueError,
                    "object_graph() needs a file descriptor, and at most "
                    "2**24 objects");
    return NULL;
  }
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "object graphs belong to the main interpreter");
    return NULL;
  }
  int pid = st_object_graph_start(&o);
  return pid < 0 ? NULL : PyLong_FromLong(pid);
}

static PyMethodDef kFunctions[] = {
    {"object_graph", object_graph, METH_VARARGS,
     "object_graph(fd, max_objects, time_ns)\n--\n\n"
     "Start a copy of this process that writes its objects into a pipe, and "
     "return the copy's pid."},
    {NULL, NULL, 0, NULL}};

int st_add_object_graph(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
