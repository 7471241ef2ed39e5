#include "hooks/call_values.h"

#if PY_VERSION_HEX >= 0x030C0000

static PyObject* described(PyObject* function, PyObject* code,
                           PyObject* value) {
  PyObject* dict =
      value ? PyObject_CallFunctionObjArgs(function, code, value, NULL) : NULL;
  if (!dict)
    st_drop_error();
  else if (!PyDict_CheckExact(dict))
    Py_CLEAR(dict);
  return dict;
}

static Py_ssize_t argument_count(const PyCodeObject* code) {
  return code->co_argcount + code->co_kwonlyargcount +
         !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

/* Returns a new tuple of the arguments of the innermost frame. */
static PyObject* argument_values(const PyCodeObject* code, PyObject* names) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  Py_ssize_t count = argument_count(code);
  PyObject* values = frame ? PyTuple_New(count) : NULL;
  for (Py_ssize_t i = 0; values && i < count; i++) {
    PyObject* value = PyFrame_GetVar(frame, PyTuple_GET_ITEM(names, i));
    if (value)
      PyTuple_SET_ITEM(values, i, value);
    else
      Py_CLEAR(values);
  }
  Py_XDECREF(frame);
  return values;
}

PyObject* st_call_arguments(PyObject* code) {
  if (!st_hooks.arguments_of)
    return NULL;
  PyObject* names = PyCode_GetVarnames((PyCodeObject*)code);
  PyObject* values = names ? argument_values((PyCodeObject*)code, names) : NULL;
  PyObject* function = Py_NewRef(st_hooks.arguments_of);
  PyObject* dict = described(function, code, values);
  Py_DECREF(function);
  Py_XDECREF(values);
  Py_XDECREF(names);
  return dict;
}

PyObject* st_call_result(PyObject* code, PyObject* value) {
  if (!st_hooks.result_of)
    return NULL;
  PyObject* function = Py_NewRef(st_hooks.result_of);
  PyObject* dict = described(function, code, value);
  Py_DECREF(function);
  return dict;
}

#endif
