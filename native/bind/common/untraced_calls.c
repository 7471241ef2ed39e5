#include "bind/common/untraced_calls.h"

#include <sys/prctl.h>

#include "core/own_threads.h"

_Thread_local uint32_t st_untraced_depth;

static PyObject* call_untraced(PyObject* Py_UNUSED(module),
                               PyObject* const* args, Py_ssize_t count) {
  if (count > 0)
    return st_call_untraced(args[0], args + 1, (size_t)count - 1);
  PyErr_SetString(PyExc_TypeError, "call_untraced() needs a function to call");
  return NULL;
}

/* The name is set before Python code runs on the thread: samplers look at it when
 * they find the first call. */
static PyObject* call_on_own_thread(PyObject* Py_UNUSED(module),
                                    PyObject* function) {
  prctl(PR_SET_NAME, ST_OWN_THREADS "helper");
  return st_call_untraced(function, NULL, 0);
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
    {"call_on_own_thread", call_on_own_thread, METH_O, NULL},
    {"call_with_last_error", call_with_last_error, METH_O, NULL},
    {0},
};

ST_BIND_PART(untraced_calls) {
  return PyModule_AddFunctions(module, kFunctions);
}
