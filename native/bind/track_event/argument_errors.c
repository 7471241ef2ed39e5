#include "bind/track_event/argument_errors.h"

_Atomic uint64_t st_argument_errors;

void swallow_error(void) {
  st_argument_errors++;
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
    PyErr_SetInterrupt();
  PyErr_Clear();
}

static PyObject* argument_errors(PyObject* Py_UNUSED(module),
                                 PyObject* Py_UNUSED(unused)) {
  return PyLong_FromUnsignedLongLong(st_argument_errors);
}

static PyMethodDef kFunctions[] = {
    {"argument_errors", argument_errors, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(argument_errors) {
  return PyModule_AddFunctions(module, kFunctions);
}
