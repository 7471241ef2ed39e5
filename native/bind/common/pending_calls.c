/* add_pending_call(): schedules a call on the main thread, from any thread.
 * The main thread makes the call between two instructions (Py_AddPendingCall).
 * CPython limits the number of scheduled calls.
 */
#include "bind/common/handler_errors.h"
#include "bind/common/python.h"

/* Makes a scheduled call.  It runs on the main thread, between two instructions
 * of the program.  An error of the call must not reach the program, so it goes
 * to sys.unraisablehook. */
static int run_pending_call(void* callable) {
  PyObject* result = PyObject_CallNoArgs(callable);
  if (!result && !st_postpone_handler_error())
    PyErr_WriteUnraisable(callable);
  Py_XDECREF(result);
  Py_DECREF((PyObject*)callable);
  return 0;
}

static PyObject* add_pending_call(PyObject* Py_UNUSED(module),
                                  PyObject* callable) {
  if (!PyCallable_Check(callable)) {
    PyErr_SetString(PyExc_TypeError, "a pending call must be callable");
    return NULL;
  }
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "only the main interpreter has pending calls; call the "
                    "function yourself");
    return NULL;
  }
  if (Py_AddPendingCall(run_pending_call, Py_NewRef(callable)) < 0) {
    Py_DECREF(callable);
    PyErr_SetString(PyExc_RuntimeError,
                    "too many calls are pending; try again later");
    return NULL;
  }
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"add_pending_call", add_pending_call, METH_O, NULL},
    {0},
};

ST_BIND_PART(pending_calls) {
  return PyModule_AddFunctions(module, kFunctions);
}
