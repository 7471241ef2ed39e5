#include "hooks/code_filter.h"

#include "hooks/tracer.h"

#if PY_VERSION_HEX >= 0x030C0000
#define request_index PyUnstable_Eval_RequestCodeExtraIndex
#define get_extra PyUnstable_Code_GetExtra
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_index _PyEval_RequestCodeExtraIndex
#define get_extra _PyCode_GetExtra
#define set_extra _PyCode_SetExtra
#endif

static Py_ssize_t extra_index = -1, name_index = -1;

static void drop_name(void* name) {
  Py_XDECREF((PyObject*)name);
}

bool st_code_filter_start(void) {
  if (extra_index < 0)
    extra_index = request_index(NULL);
  if (name_index < 0)
    name_index = request_index(drop_name);
  if (extra_index < 0 || name_index < 0)
    PyErr_SetString(PyExc_RuntimeError,
                    "function calls can't be traced: other tools of this "
                    "program use all slots of code objects; switch one off");
  else
    st_hooks.api->set_code_name(st_code_name);
  return extra_index >= 0 && name_index >= 0;
}

/* Returns the name of the module whose code is running, as a borrowed str, or
 * None. */
static PyObject* running_module(void) {
  PyObject* globals = PyEval_GetGlobals();
  PyObject* name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
  return name && PyUnicode_Check(name) ? name : Py_None;
}

PyObject* st_code_name(PyObject* code) {
  void* name = NULL;
  if (name_index >= 0)
    get_extra(code, name_index, &name);
  return name ? (PyObject*)name : ((PyCodeObject*)code)->co_qualname;
}

/* Sets the name of the code's slices. */
static void set_name(PyObject* code, PyObject* name) {
  if (set_extra(code, name_index, Py_NewRef(name)) == 0)
    return;
  Py_DECREF(name);
  PyErr_Clear();
}

/* Returns whether the Python function `accepts` accepts the code.  If `accepts`
 * raises, the code is traced: a trace with too much is better than one with too
 * little. */
static bool call_accepts(PyObject* code) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  /* The call needs a new reference to `accepts`, because the call may stop the
   * tracer, which drops its reference. */
  PyObject* accepts = Py_NewRef(st_hooks.accepts);
  PyObject* module = Py_NewRef(running_module());
  PyObject* answer =
      PyObject_CallFunctionObjArgs(accepts, code, module, (PyObject*)NULL);
  bool named = answer && PyUnicode_Check(answer);
  int accepted = answer && !named ? PyObject_IsTrue(answer) : 1;
  st_drop_error();
  if (named)
    set_name(code, answer);
  Py_XDECREF(answer);
  Py_DECREF(module);
  Py_DECREF(accepts);
  PyErr_Restore(type, value, traceback);
  return accepted != 0;
}

bool st_code_accepted(PyObject* code) {
  if (!st_hooks.accepts)
    return true;
  uintptr_t generation = st_hooks.generation;
  void* extra = NULL;
  get_extra(code, extra_index, &extra);
  if (ST_LIKELY((uintptr_t)extra >> 1 == generation))
    return (uintptr_t)extra & 1;
  bool accepted = call_accepts(code);
  if (set_extra(code, extra_index,
                (void*)(generation << 1 | (uintptr_t)accepted)) < 0)
    /* When out of memory, the result is not stored: the next call of this code
     * calls `accepts` again. */
    PyErr_Clear();
  return accepted;
}
