#include "bind/common/handler_errors.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bind/common/python.h"

/* The largest number of nested callables that code_of() examines.  It suffices
 * for a functools.partial of a callable object. */
enum { MAX_WRAPPERS = 4 };

/* Returns whether the calling thread is the main thread of the process, the
 * only thread that runs signal handlers.  The answer is right even directly
 * after a fork. */
static bool is_main_thread(void) {
  return syscall(SYS_gettid) == getpid();
}

/* Returns a new reference to the code object that a callable runs.  Returns
 * NULL if the callable is not written in Python.  Leaves no exception set. */
static PyObject* code_of(PyObject* callable) {
  PyObject* code = NULL;
  Py_INCREF(callable);
  for (int i = 0; i < MAX_WRAPPERS && callable && !code; i++) {
    code = PyObject_GetAttrString(callable, "__code__");
    PyErr_Clear();
    PyObject* inner = code ? NULL : PyObject_GetAttrString(callable, "func");
    PyErr_Clear();
    if (!code && !inner)
      inner = PyObject_GetAttrString(callable, "__call__");
    PyErr_Clear();
    Py_SETREF(callable, inner);
  }
  Py_XDECREF(callable);
  return code;
}

/* Returns a new list with the code objects of all signal handlers.  Returns
 * NULL when out of memory. */
static PyObject* handler_codes(void) {
  PyObject* module = PyImport_ImportModule("_signal");
  PyObject* codes = module ? PyList_New(0) : NULL;
  for (int number = 1; codes && number < NSIG; number++) {
    PyObject* handler = PyObject_CallMethod(module, "getsignal", "i", number);
    PyObject* code = handler ? code_of(handler) : NULL;
    PyErr_Clear();
    if (code && PyList_Append(codes, code) < 0)
      PyErr_Clear();
    Py_XDECREF(code);
    Py_XDECREF(handler);
  }
  Py_XDECREF(module);
  PyErr_Clear();
  return codes;
}

static bool holds(PyObject* codes, PyObject* code) {
  for (Py_ssize_t i = 0; codes && i < PyList_GET_SIZE(codes); i++) {
    if (PyList_GET_ITEM(codes, i) == code)
      return true;
  }
  return false;
}

/* Returns a new reference to the part of a traceback that begins with a signal
 * handler's frame.  Returns NULL if the traceback contains no handler. */
static PyObject* from_handler(PyObject* traceback) {
  PyObject* codes = handler_codes();
  PyObject* trace = Py_NewRef(traceback ? traceback : Py_None);
  while (trace && PyTraceBack_Check(trace)) {
    PyFrameObject* frame = ((PyTracebackObject*)trace)->tb_frame;
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool found = holds(codes, (PyObject*)code);
    Py_DECREF(code);
    if (found)
      break;
    PyObject* next = (PyObject*)((PyTracebackObject*)trace)->tb_next;
    Py_SETREF(trace, Py_XNewRef(next));
  }
  Py_XDECREF(codes);
  if (trace && !PyTraceBack_Check(trace))
    Py_CLEAR(trace);
  return trace;
}

static int raise_now(void* error) {
  PyObject* value = error;
  PyObject* traceback = PyException_GetTraceback(value);
  PyErr_Restore(Py_NewRef((PyObject*)Py_TYPE(value)), value, traceback);
  return -1;
}

static bool postpone(PyObject* error, PyObject* handler_traceback) {
  PyObject* traceback = handler_traceback ? handler_traceback : Py_None;
  PyException_SetTraceback(error, traceback);
  Py_INCREF(error);
  if (Py_AddPendingCall(raise_now, error) == 0)
    return true;
  Py_DECREF(error);
  return false;
}

bool st_postpone_handler_error(void) {
  if (!PyErr_Occurred() || !is_main_thread())
    return false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* handler_traceback = from_handler(traceback);
  bool is_handler_s =
      handler_traceback || !PyErr_GivenExceptionMatches(type, PyExc_Exception);
  bool postponed = is_handler_s && value && postpone(value, handler_traceback);
  Py_XDECREF(handler_traceback);
  if (!postponed) {
    PyErr_Restore(type, value, traceback);
    return false;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return true;
}

void st_drop_own_error(void) {
  if (!st_postpone_handler_error())
    PyErr_Clear();
}
