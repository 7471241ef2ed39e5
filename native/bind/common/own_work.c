#include "bind/common/own_work.h"

_Thread_local uint32_t st_own_work;

static PyObject* own_work(PyObject* Py_UNUSED(module), PyObject* const* args,
                          Py_ssize_t count) {
  if (count > 0)
    return st_call_own(args[0], args + 1, (size_t)count - 1);
  PyErr_SetString(PyExc_TypeError, "call_untraced() needs a function to call");
  return NULL;
}

static PyMethodDef kFunctions[] = {
    {"call_untraced", (PyCFunction)(void (*)(void))own_work, METH_FASTCALL,
     "Call a function; function tracing leaves out the calls that it makes."},
    {0},
};

ST_BIND_PART(own_work) {
  return PyModule_AddFunctions(module, kFunctions);
}
