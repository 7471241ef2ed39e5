/* call_after(ms, function) calls a Python function on a new thread after a
 * delay in milliseconds.  cancel_call() cancels the call, or waits until it has
 * ended.  drop_call() does the same, but leaves a thread that is still waiting:
 * to wake it and to wait for its end takes longer than the end of the process.
 *
 * There is at most one such call: call_after() cancels an earlier one.  If no
 * thread can be started, the function is not called.  The thread sleeps without
 * the GIL, and has all signals blocked.  The child of a fork has no delayed
 * call.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bind/common/python.h"
#include "bind/common/untraced_calls.h"
#include "core/thread_join.h"

static struct {
  pthread_t thread;
  pid_t process, kernel_id;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct timespec deadline;
  bool cancelled, due;
  PyInterpreterState* interpreter;
  PyObject* function; /* NULL if there is no thread to join. */
} call;

static bool wait_for_deadline(void) {
  pthread_mutex_lock(&call.lock);
  while (!call.cancelled && pthread_cond_timedwait(&call.changed, &call.lock,
                                                   &call.deadline) == 0) {
  }
  call.due = !call.cancelled;
  pthread_mutex_unlock(&call.lock);
  return call.due;
}

static void* run(void* Py_UNUSED(unused)) {
  call.kernel_id = (pid_t)syscall(SYS_gettid);
  PyThreadState* state =
      wait_for_deadline() ? PyThreadState_New(call.interpreter) : NULL;
  if (!state)
    return NULL;
  PyEval_RestoreThread(state);
  PyObject* result = st_call_untraced(call.function, NULL, 0);
  if (!result)
    PyErr_WriteUnraisable(call.function);
  Py_XDECREF(result);
  PyThreadState_Clear(state);
  PyThreadState_DeleteCurrent();
  return NULL;
}

static bool start(long ms) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&call.changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&call.lock, NULL);
  clock_gettime(CLOCK_MONOTONIC, &call.deadline);
  call.deadline.tv_sec += ms / 1000;
  call.deadline.tv_nsec += ms % 1000 * 1000000;
  if (call.deadline.tv_nsec >= 1000000000) {
    call.deadline.tv_sec++;
    call.deadline.tv_nsec -= 1000000000;
  }
  call.cancelled = call.due = false;
  call.process = getpid();
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  int error = pthread_create(&call.thread, NULL, run, NULL);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error == 0;
}

static bool has_thread(void) {
  return call.function && call.process == getpid();
}

static bool is_own_thread(void) {
  return has_thread() && pthread_equal(call.thread, pthread_self());
}

static PyObject* cancel_call(PyObject* Py_UNUSED(module),
                             PyObject* Py_UNUSED(unused)) {
  if (is_own_thread())
    Py_RETURN_NONE;
  if (has_thread()) {
    pthread_mutex_lock(&call.lock);
    call.cancelled = true;
    pthread_cond_signal(&call.changed);
    pthread_mutex_unlock(&call.lock);
    Py_BEGIN_ALLOW_THREADS
    st_thread_join(call.thread, &call.kernel_id);
    Py_END_ALLOW_THREADS
  }
  Py_CLEAR(call.function);
  Py_RETURN_NONE;
}

static PyObject* drop_call(PyObject* module, PyObject* unused) {
  if (!has_thread() || is_own_thread())
    Py_RETURN_NONE;
  pthread_mutex_lock(&call.lock);
  bool due = call.due;
  call.cancelled = true;
  pthread_mutex_unlock(&call.lock);
  if (due)
    return cancel_call(module, unused);
  Py_RETURN_NONE;
}

static PyObject* call_after(PyObject* module, PyObject* args) {
  long ms;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "lO", &ms, &function))
    return NULL;
  cancel_call(module, NULL);
  call.interpreter = PyInterpreterState_Get();
  call.function = Py_NewRef(function);
  if (!start(ms))
    Py_CLEAR(call.function);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"call_after", call_after, METH_VARARGS, NULL},
    {"cancel_call", cancel_call, METH_NOARGS, NULL},
    {"drop_call", drop_call, METH_NOARGS, NULL},
    {0},
};

ST_BIND_PART(delayed_call) {
  return PyModule_AddFunctions(module, kFunctions);
}
