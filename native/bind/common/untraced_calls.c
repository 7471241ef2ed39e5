#include "bind/common/untraced_calls.h"

_Thread_local uint32_t st_untraced_depth;

static PyObject* call_untraced(PyObject* Py_UNUSED(module),
                               PyObject* const* args, Py_ssize_t count) {
  if (count > 0)
    return st_call_untraced(args[0], args + 1, (size_t)count - 1);
  PyErr_SetString(PyExc_TypeError, "call_untraced() needs a function to call");
  return NULL;
}

/* Usually there is none, so this needs no Python code: in the child of a fork
 * that would copy pages. */
static PyObject* call_with_last_error(PyObject* Py_UNUSED(module),
                                      PyObject* function) {
  PyObject* error = PySys_GetObject("last_value");
  if (!error || error == Py_None)
    Py_RETURN_NONE;
  Py_INCREF(error);
  PyObject* result = st_call_untraced(function, &error, 1);
  Py_DECREF(error);
  return result;
}

static PyMethodDef kFunctions[] = {
    {"call_untraced", (PyCFunction)(void (*)(void))call_untraced, METH_FASTCALL,
     NULL},
    {"call_with_last_error", call_with_last_error, METH_O, NULL},
    {0},
};

ST_BIND_PART(untraced_calls) {
  return PyModule_AddFunctions(module, kFunctions);
}
