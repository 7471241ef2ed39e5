#include "hooks/around.h"

#include "hooks/auto_detail.h"
#include "hooks/task_lives.h"
#include "hooks/tracer.h"

#include <structmember.h>

struct around {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* function;
  /* The observer that is called before the function, or None. */
  PyObject* before;
  /* The observer that is called after the function, or None. */
  PyObject* after;
};

static PyObject* around_call(PyObject* self, PyObject* const* args,
                             size_t count, PyObject* names);

static PyObject* around_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  static char* names[] = {"function", "before", "after", NULL};
  PyObject *function, *before, *after = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Around", names,
                                   &function, &before, &after))
    return NULL;
  struct around* a = (struct around*)type->tp_alloc(type, 0);
  if (!a)
    return NULL;
  a->call = around_call;
  a->function = Py_NewRef(function);
  a->before = Py_NewRef(before);
  a->after = Py_NewRef(after);
  return (PyObject*)a;
}

/* Calls the observer: after(first, ...).  Drops an exception of the observer.
 * A pending exception of the program stays set. */
static void tell_after(PyObject* after, PyObject* first, PyObject* rest) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result =
      first ? PyObject_CallFunctionObjArgs(after, first, rest, (PyObject*)NULL)
            : NULL;
  Py_XDECREF(result);
  st_drop_error();
  PyErr_Restore(type, value, traceback);
}

static PyObject* observed_call(struct around* a, PyObject* const* args,
                               size_t count, PyObject* names) {
  PyObject* token = PyObject_Vectorcall(a->before, args, count, names);
  if (!token)
    st_drop_error();
  PyObject* result = PyObject_Vectorcall(a->function, args, count, names);
  if (token && token != Py_None && a->after != Py_None)
    tell_after(a->after, token, result ? result : Py_None);
  Py_XDECREF(token);
  return result;
}

/* Calls Handle._run of an event loop. */
static PyObject* step_call(struct around* a, PyObject* const* args,
                           size_t count, PyObject* names) {
  PyObject* handle = PyVectorcall_NARGS(count) ? args[0] : NULL;
  uint64_t begin = st_hooks.api->now();
  struct st_span outer = st_auto_step_begins(begin);
  st_task_search(begin);
  PyObject* task = handle ? st_task_step_begins(handle, begin) : NULL;
  PyObject* result = PyObject_Vectorcall(a->function, args, count, names);
  uint64_t end = st_hooks.api->now();
  if (task)
    st_task_step_ended(task, end);
  st_task_search_after_step(end);
  bool is_long = handle && a->after != Py_None &&
                 end - begin >= atomic_load(&st_hooks.threshold_ns);
  if (is_long) {
    st_auto_step_ends(end);
    PyObject* time = PyLong_FromUnsignedLongLong(begin);
    tell_after(a->after, time, handle);
    Py_XDECREF(time);
  }
  st_auto_step_is_over(begin, outer, is_long);
  return result;
}

static PyObject* around_call(PyObject* self, PyObject* const* args,
                             size_t count, PyObject* names) {
  struct around* a = (struct around*)self;
  return a->before == Py_None ? step_call(a, args, count, names)
                              : observed_call(a, args, count, names);
}

static PyObject* around_get(PyObject* self, PyObject* object,
                            PyObject* Py_UNUSED(type)) {
  if (!object || object == Py_None)
    return Py_NewRef(self);
  return PyMethod_New(self, object);
}

static PyObject* around_getattro(PyObject* self, PyObject* name) {
  struct around* a = (struct around*)self;
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
    return Py_NewRef(a->function);
  return PyObject_GetAttr(a->function, name);
}

static int around_setattro(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(((struct around*)self)->function, name, value);
}

static PyObject* around_repr(PyObject* self) {
  return PyObject_Repr(((struct around*)self)->function);
}

static int around_traverse(PyObject* self, visitproc visit, void* arg) {
  struct around* a = (struct around*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(a->function);
  Py_VISIT(a->before);
  Py_VISIT(a->after);
  return 0;
}

static int around_clear(PyObject* self) {
  struct around* a = (struct around*)self;
  Py_CLEAR(a->function);
  Py_CLEAR(a->before);
  Py_CLEAR(a->after);
  return 0;
}

static void around_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  around_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct around, call),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "Around(function, before, after=None)\n--\n\n"
     "Calls before(...), function(...), after(token, result)."},
    {Py_tp_members, kMembers},
    {Py_tp_new, around_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, around_get},
    {Py_tp_getattro, around_getattro},
    {Py_tp_setattro, around_setattro},
    {Py_tp_repr, around_repr},
    {Py_tp_traverse, around_traverse},
    {Py_tp_clear, around_clear},
    {Py_tp_dealloc, around_dealloc},
    {0, NULL}};

static PyType_Spec kSpec = {
    "stretto._pyhooks.Around", sizeof(struct around), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
        Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    kSlots};

int st_add_around(PyObject* module) {
  PyObject* type = PyType_FromModuleAndSpec(module, &kSpec, NULL);
  if (!type)
    return -1;
  int result = PyModule_AddType(module, (PyTypeObject*)type);
  Py_DECREF(type);
  return result;
}
