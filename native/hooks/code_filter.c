#include "hooks/code_filter.h"

#include "hooks/python_layout.h"
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

enum {
  ACCEPTED = 1,
  FOREIGN = 2,
  STARTER = 4,
  VERDICT_BITS = 3,
  MAX_CALLERS = 64
};

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

/* Returns the name of the module that has these globals, as a borrowed str, or
 * None. */
static PyObject* module_of(PyObject* globals) {
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

/* Returns the verdict of the Python function `accepts` on the code, which runs
 * with these globals.  If
 * `accepts` raises, the code is traced: a trace with too much is better than one
 * with too little. */
static uintptr_t call_accepts(PyObject* code, PyObject* globals) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  /* The call needs a new reference to `accepts`, because the call may stop the
   * tracer, which drops its reference. */
  PyObject* accepts = Py_NewRef(st_hooks.accepts);
  PyObject* module = Py_NewRef(module_of(globals));
  PyObject* answer =
      PyObject_CallFunctionObjArgs(accepts, code, module, (PyObject*)NULL);
  bool foreign = answer && PyTuple_Check(answer) && PyTuple_GET_SIZE(answer);
  PyObject* name = foreign ? PyTuple_GET_ITEM(answer, 0) : answer;
  bool named = name && PyUnicode_Check(name);
  bool starter = answer == Py_Ellipsis;
  int accepted = answer && !named ? !starter && PyObject_IsTrue(answer) : 1;
  st_drop_error();
  if (named)
    set_name(code, name);
  Py_XDECREF(answer);
  Py_DECREF(module);
  Py_DECREF(accepts);
  PyErr_Restore(type, value, traceback);
  st_hooks.some_foreign |= foreign;
  return (accepted ? ACCEPTED : 0) | (foreign ? FOREIGN : 0) |
         (starter ? STARTER : 0);
}

/* Sets *verdict to the stored verdict on the code.  Returns false if this
 * tracer has none yet. */
static bool find_verdict(PyObject* code, uintptr_t* verdict) {
  void* extra = NULL;
  get_extra(code, extra_index, &extra);
  *verdict = (uintptr_t)extra;
  return *verdict >> VERDICT_BITS == st_hooks.generation;
}

bool st_code_accepted(PyObject* code) {
  return st_code_accepted_in(code, NULL);
}

bool st_code_accepted_in(PyObject* code, PyObject* globals) {
  if (!st_hooks.accepts)
    return true;
  uintptr_t generation = st_hooks.generation, verdict;
  if (ST_LIKELY(find_verdict(code, &verdict)))
    return verdict & ACCEPTED;
  verdict = call_accepts(code, globals ? globals : PyEval_GetGlobals());
  if (set_extra(code, extra_index,
                (void*)(generation << VERDICT_BITS | verdict)) < 0)
    /* When out of memory, the result is not stored: the next call of this code
     * calls `accepts` again. */
    PyErr_Clear();
  return verdict & ACCEPTED;
}

bool st_code_is_starter(PyObject* code) {
  uintptr_t verdict;
  return find_verdict(code, &verdict) && verdict & STARTER;
}

enum st_caller st_code_as_caller(PyObject* code) {
  uintptr_t verdict;
  if (!find_verdict(code, &verdict))
    return ST_CALLER_OWN;
  if (!(verdict & ACCEPTED))
    return ST_CALLER_SKIPPED;
  return verdict & FOREIGN ? ST_CALLER_FOREIGN : ST_CALLER_OWN;
}

bool st_call_is_inner_foreign(PyObject* code) {
  if (st_code_as_caller(code) != ST_CALLER_FOREIGN)
    return false;
  struct st_stack_frame f = st_python_frame(PyThreadState_Get());
  for (int i = 0; i < MAX_CALLERS; i++) {
    f = st_python_caller(f);
    if (!f.address)
      break;
    enum st_caller caller = st_code_as_caller((PyObject*)(uintptr_t)f.code);
    if (caller != ST_CALLER_SKIPPED)
      return caller == ST_CALLER_FOREIGN;
  }
  return true;
}
