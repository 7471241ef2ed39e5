/* add_pending_call(): schedules a call on the main thread, from any thread.
 * The main thread makes the call between two instructions (Py_AddPendingCall).
 * CPython limits the number of scheduled calls.
 *
 * call_when_left() does so once a frame has left its current instruction.
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

/* Returns whether a call of the callable may be scheduled; else raises. */
static bool may_be_pending(PyObject* callable) {
  if (!PyCallable_Check(callable)) {
    PyErr_SetString(PyExc_TypeError, "a pending call must be callable");
    return false;
  }
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "only the main interpreter has pending calls; call the "
                    "function yourself");
    return false;
  }
  return true;
}

static PyObject* refuse(void) {
  PyErr_SetString(PyExc_RuntimeError,
                  "too many calls are pending; try again later");
  return NULL;
}

static PyObject* add_pending_call(PyObject* Py_UNUSED(module),
                                  PyObject* callable) {
  if (!may_be_pending(callable))
    return NULL;
  if (Py_AddPendingCall(run_pending_call, Py_NewRef(callable)) < 0) {
    Py_DECREF(callable);
    return refuse();
  }
  Py_RETURN_NONE;
}

struct call_when_left {
  PyFrameObject* frame;
  int instruction;
  PyObject* callable;
};

static void drop(struct call_when_left* call) {
  Py_DECREF(call->frame);
  Py_DECREF(call->callable);
  PyMem_Free(call);
}

/* While a function runs that the instruction has called, the function's frame
 * is the current one. */
static bool has_left(const struct call_when_left* call) {
  return PyFrame_GetLasti(call->frame) != call->instruction ||
         PyEval_GetFrame() == call->frame;
}

static int run_when_left(void* self) {
  struct call_when_left* call = self;
  if (has_left(call))
    run_pending_call(Py_NewRef(call->callable));
  else if (Py_AddPendingCall(run_when_left, call) == 0)
    return 0;
  drop(call);
  return 0;
}

static PyObject* call_when_left(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *frame, *callable;
  int instruction;
  if (!PyArg_ParseTuple(args, "O!iO:call_when_left", &PyFrame_Type, &frame,
                        &instruction, &callable) ||
      !may_be_pending(callable))
    return NULL;
  struct call_when_left* call = PyMem_Malloc(sizeof *call);
  if (!call)
    return PyErr_NoMemory();
  *call = (struct call_when_left){(PyFrameObject*)Py_NewRef(frame), instruction,
                                  Py_NewRef(callable)};
  if (Py_AddPendingCall(run_when_left, call) < 0) {
    drop(call);
    return refuse();
  }
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"add_pending_call", add_pending_call, METH_O, NULL},
    {"call_when_left", call_when_left, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(pending_calls) {
  return PyModule_AddFunctions(module, kFunctions);
}
