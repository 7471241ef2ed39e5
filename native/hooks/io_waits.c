#include "hooks/io_waits.h"

#include <stdbool.h>

#include "hooks/auto_detail.h"
#include "hooks/hook_thread.h"
#include "hooks/tracer.h"

/* The forms of C functions: their arguments after `self`. */
enum form {
  ONE,         /* an object, a tuple, or nothing */
  TUPLE_NAMES, /* a tuple and a dict */
  ARRAY,       /* an array and its size */
  ARRAY_NAMES, /* and the names of the last arguments */
  OF_CLASS,    /* the defining class, then the same */
  FORMS
};

/* What a call waits for: an object that tells it, if any. */
enum subject { NOTHING, SELF, FIRST_ARGUMENT };

struct entry {
  PyMethodDef* method;
  PyCFunction original, ours;
  PyObject* template;
  enum form form;
  enum subject subject;
};

struct call {
  int number; /* That of the entry. */
  PyObject *self, *one, *names;
  PyTypeObject* class;
  PyObject* const* array;
  Py_ssize_t count;
};

static struct {
  /* Calls may be inside of ours after the end, so the entries stay. */
  struct entry entries[ST_IO_ENTRIES];
  int count;
  /* A callable: subject -> (file, peer).  NULL while nothing is recorded. */
  PyObject* describe;
  PyInterpreterState* interpreter;
  uint64_t min_ns;
} io;

static bool is_recording(void) {
  return io.describe && !st_hook_thread.writes_wait &&
         PyInterpreterState_Get() == io.interpreter &&
         !st_hooks.api->is_untraced();
}

/* --- Calls --------------------------------------------------------------- */

typedef PyObject* (*array_function)(PyObject*, PyObject* const*, Py_ssize_t);
typedef PyObject* (*array_names_function)(PyObject*, PyObject* const*,
                                          Py_ssize_t, PyObject*);
typedef PyObject* (*class_function)(PyObject*, PyTypeObject*, PyObject* const*,
                                    Py_ssize_t, PyObject*);

static PyObject* run(const struct call* c) {
  void (*f)(void) = (void (*)(void))io.entries[c->number].original;
  switch (io.entries[c->number].form) {
    case TUPLE_NAMES:
      return ((PyCFunctionWithKeywords)f)(c->self, c->one, c->names);
    case ARRAY:
      return ((array_function)f)(c->self, c->array, c->count);
    case ARRAY_NAMES:
      return ((array_names_function)f)(c->self, c->array, c->count, c->names);
    case OF_CLASS:
      return ((class_function)f)(c->self, c->class, c->array, c->count,
                                 c->names);
    default:
      return ((PyCFunction)f)(c->self, c->one);
  }
}

/* Returns what a call waits for; NULL if it does not say. */
static PyObject* subject_of(const struct call* c) {
  enum subject subject = io.entries[c->number].subject;
  if (subject != FIRST_ARGUMENT)
    return subject == SELF ? c->self : NULL;
  if (c->array)
    return c->count || c->names ? c->array[0] : NULL;
  if (!c->one || !PyTuple_Check(c->one))
    return c->one;
  return PyTuple_GET_SIZE(c->one) ? PyTuple_GET_ITEM(c->one, 0) : NULL;
}

static void write_wait(const struct call* c, uint64_t begin, uint64_t end) {
  st_auto_wait_ends(begin, end);
  PyObject* subject = subject_of(c);
  PyObject* target = subject ? PyObject_CallOneArg(io.describe, subject) : NULL;
  if (subject && !target)
    st_drop_error();
  bool is_pair =
      target && PyTuple_Check(target) && PyTuple_GET_SIZE(target) == 2;
  const struct st_past_slice slice = {
      begin,
      end,
      {is_pair ? PyTuple_GET_ITEM(target, 0) : Py_None,
       is_pair ? PyTuple_GET_ITEM(target, 1) : Py_None},
      .count = 2};
  st_hooks.api->past_slice(io.entries[c->number].template, NULL, &slice);
  Py_XDECREF(target);
}

/* Writes the slice of a wait.  An exception that the call has raised stays
 * pending: without a result there is one. */
static void note_wait(const struct call* c, const PyObject* result,
                      uint64_t begin, uint64_t end) {
  PyObject *type = NULL, *value, *traceback;
  if (!result)
    PyErr_Fetch(&type, &value, &traceback);
  st_hook_thread.writes_wait = true;
  write_wait(c, begin, end);
  st_hook_thread.writes_wait = false;
  if (!result)
    PyErr_Restore(type, value, traceback);
}

static PyObject* measured(const struct call* c) {
  if (!is_recording())
    return run(c);
  uint64_t begin = st_hooks.api->now();
  st_auto_wait_begins(PyThreadState_Get(), begin);
  PyObject* result = run(c);
  uint64_t end = st_hooks.api->now();
  if (end - begin >= io.min_ns && is_recording())
    note_wait(c, result, begin, end);
  st_auto_wait_is_over(begin);
  return result;
}

/* --- Our functions: one of each form for each entry ----------------------- */

#define ST_FUNCTIONS(n)                                                        \
  static PyObject* one_##n(PyObject* self, PyObject* one) {                    \
    return measured(&(struct call){.number = n, .self = self, .one = one});    \
  }                                                                            \
  static PyObject* tuple_##n(PyObject* self, PyObject* one, PyObject* names) { \
    return measured(&(struct call){                                            \
        .number = n, .self = self, .one = one, .names = names});               \
  }                                                                            \
  static PyObject* array_##n(PyObject* self, PyObject* const* array,           \
                             Py_ssize_t count) {                               \
    return measured(&(struct call){                                            \
        .number = n, .self = self, .array = array, .count = count});           \
  }                                                                            \
  static PyObject* array_names_##n(PyObject* self, PyObject* const* array,     \
                                   Py_ssize_t count, PyObject* names) {        \
    return measured(&(struct call){.number = n,                                \
                                   .self = self,                               \
                                   .array = array,                             \
                                   .count = count,                             \
                                   .names = names});                           \
  }                                                                            \
  static PyObject* of_class_##n(PyObject* self, PyTypeObject* class,           \
                                PyObject* const* array, Py_ssize_t count,      \
                                PyObject* names) {                             \
    return measured(&(struct call){.number = n,                                \
                                   .self = self,                               \
                                   .names = names,                             \
                                   .class = class,                             \
                                   .array = array,                             \
                                   .count = count});                           \
  }
#define ST_OURS(n)                                  \
  {one_##n, (PyCFunction)(void (*)(void))tuple_##n, \
   (PyCFunction)(void (*)(void))array_##n,          \
   (PyCFunction)(void (*)(void))array_names_##n,    \
   (PyCFunction)(void (*)(void))of_class_##n},
#define ST_TEN(X, d) \
  X(d##0)            \
  X(d##1) X(d##2) X(d##3) X(d##4) X(d##5) X(d##6) X(d##7) X(d##8) X(d##9)

ST_TEN(ST_FUNCTIONS, )
ST_TEN(ST_FUNCTIONS, 1)
ST_TEN(ST_FUNCTIONS, 2)
ST_TEN(ST_FUNCTIONS, 3)

static PyCFunction const kOurs[ST_IO_ENTRIES][FORMS] = {
    ST_TEN(ST_OURS, ) ST_TEN(ST_OURS, 1) ST_TEN(ST_OURS, 2) ST_TEN(ST_OURS, 3)};

/* --- Start and stop ------------------------------------------------------ */

/* Returns the form of functions with these flags; FORMS if it is unknown. */
static enum form form_of(int flags) {
  switch (flags) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS:
      return ONE;
    case METH_VARARGS | METH_KEYWORDS:
      return TUPLE_NAMES;
    case METH_FASTCALL:
      return ARRAY;
    case METH_FASTCALL | METH_KEYWORDS:
      return ARRAY_NAMES;
    case METH_METHOD | METH_FASTCALL | METH_KEYWORDS:
      return OF_CLASS;
    default:
      return FORMS;
  }
}

static PyMethodDef* method_of(PyObject* function) {
  if (Py_IS_TYPE(function, &PyMethodDescr_Type))
    return ((PyMethodDescrObject*)function)->d_method;
  return PyCFunction_CheckExact(function) ? ((PyCFunctionObject*)function)->m_ml
                                          : NULL;
}

static struct entry* entry_of(PyMethodDef* method) {
  for (int i = 0; i < io.count; i++)
    if (io.entries[i].method == method)
      return &io.entries[i];
  enum form form = form_of(method->ml_flags);
  if (io.count == ST_IO_ENTRIES || form == FORMS)
    return NULL;
  struct entry* e = &io.entries[io.count];
  *e = (struct entry){.method = method,
                      .original = method->ml_meth,
                      .ours = kOurs[io.count][form],
                      .form = form};
  io.count++;
  return e;
}

static PyObject* observe(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *function, *template;
  int subject;
  if (!PyArg_ParseTuple(args, "OOi", &function, &template, &subject))
    return NULL;
  PyMethodDef* method = method_of(function);
  struct entry* e = io.describe && method ? entry_of(method) : NULL;
  if (!e || (method->ml_meth != e->original && method->ml_meth != e->ours))
    Py_RETURN_FALSE;
  Py_XSETREF(e->template, Py_NewRef(template));
  e->subject = (enum subject)subject;
  method->ml_meth = e->ours;
  Py_RETURN_TRUE;
}

static PyObject* start(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject* describe;
  unsigned long long min_ns;
  if (!PyArg_ParseTuple(args, "OK", &describe, &min_ns))
    return NULL;
#ifdef Py_GIL_DISABLED
  Py_RETURN_FALSE;
#endif
  if (io.describe || PyInterpreterState_Get() != PyInterpreterState_Main())
    Py_RETURN_FALSE;
  io.interpreter = PyInterpreterState_Get();
  io.min_ns = min_ns;
  io.describe = Py_NewRef(describe);
  Py_RETURN_TRUE;
}

static PyObject* stop(PyObject* Py_UNUSED(module),
                      PyObject* Py_UNUSED(unused)) {
  for (int i = 0; i < io.count; i++)
    if (io.entries[i].method->ml_meth == io.entries[i].ours)
      io.entries[i].method->ml_meth = io.entries[i].original;
  Py_CLEAR(io.describe);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"start_io_waits", start, METH_VARARGS,
     "start_io_waits(describe, min_ns)\n--\n\nRecord waits of min_ns or longer "
     "in the functions that are observed from now on; describe(subject) "
     "returns (file, peer). Return whether that is possible."},
    {"observe_io_waits", observe, METH_VARARGS,
     "observe_io_waits(function, template, subject)\n--\n\nRecord waits in a C "
     "function; return whether that is possible."},
    {"stop_io_waits", stop, METH_NOARGS, "Stop recording waits for I/O."},
    {NULL, NULL, 0, NULL}};

int st_add_io_waits(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
