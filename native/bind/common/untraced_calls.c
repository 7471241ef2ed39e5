#include "bind/common/untraced_calls.h"

_Thread_local uint32_t st_untraced_depth;

static PyObject* call_untraced(PyObject* Py_UNUSED(module),
                               PyObject* const* args, Py_ssize_t count) {
  if (count > 0)
    return st_call_untraced(args[0], args + 1, (size_t)count - 1);
  PyErr_SetString(PyExc_TypeError, "call_untraced() needs a function to call");
  return NULL;
}

static PyMethodDef kFunctions[] = {
    {"call_untraced", (PyCFunction)(void (*)(void))call_untraced, METH_FASTCALL,
     NULL},
    {0},
};

ST_BIND_PART(untraced_calls) {
  return PyModule_AddFunctions(module, kFunctions);
}
