/* call_after(ms, function) calls a Python function on a new thread after a
 * delay in milliseconds.  cancel_call() cancels the call, or waits until it has
 * ended.  drop_call() does the same, but leaves a thread that is still waiting.
 *
 * The thread sleeps without the GIL, and has all signals blocked.
 */
#include "bind/common/delayed_call.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bind/common/thread_states.h"
#include "bind/common/untraced_calls.h"
#include "core/thread_join.h"

static struct {
  pthread_t thread;
  pid_t process, kernel_id;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct timespec deadline;
  cpu_set_t cpus; /* Those of the thread, if it is confined to one. */
  bool confined;
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

/* Confines this thread, and the thread that it starts next, to this CPU.  If
 * the new thread began on another CPU, that one would be interrupted for each
 * page that a forked child copies.  Returns whether set_cpus() has to follow.
 *
 * Not with real-time scheduling: there the new thread might wait for ever. */
static bool stay_on_this_cpu(void) {
  int cpu = sched_getcpu(), policy = sched_getscheduler(0);
  if (cpu < 0 || cpu >= CPU_SETSIZE ||
      (policy != SCHED_OTHER && policy != SCHED_BATCH) ||
      sched_getaffinity(0, sizeof call.cpus, &call.cpus) != 0)
    return false;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(cpu, &here);
  return sched_setaffinity(0, sizeof here, &here) == 0;
}

static void set_cpus(void) {
  sched_setaffinity(0, sizeof call.cpus, &call.cpus);
}

static void* run(void* Py_UNUSED(unused)) {
  call.kernel_id = (pid_t)syscall(SYS_gettid);
  pthread_setname_np(pthread_self(), "stretto-later");
  bool due = wait_for_deadline();
  if (call.confined)
    set_cpus();
  PyThreadState* state = due ? st_new_thread_state(call.interpreter) : NULL;
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
  call.confined = stay_on_this_cpu();
  int error = pthread_create(&call.thread, NULL, run, NULL);
  if (call.confined)
    set_cpus();
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error == 0;
}

static bool has_thread(void) {
  return call.function && call.process == getpid();
}

static bool is_own_thread(void) {
  return has_thread() && pthread_equal(call.thread, pthread_self());
}

static void cancel(void) {
  if (is_own_thread())
    return;
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
}

void st_drop_call(void) {
  if (!has_thread() || is_own_thread())
    return;
  pthread_mutex_lock(&call.lock);
  bool due = call.due;
  call.cancelled = true;
  pthread_mutex_unlock(&call.lock);
  if (due)
    cancel();
}

void st_call_after(long ms, PyObject* function) {
  cancel();
  call.interpreter = PyInterpreterState_Get();
  call.function = Py_NewRef(function);
  if (!start(ms))
    Py_CLEAR(call.function);
}

static PyObject* cancel_call(PyObject* Py_UNUSED(module),
                             PyObject* Py_UNUSED(unused)) {
  cancel();
  Py_RETURN_NONE;
}

static PyObject* drop_call(PyObject* Py_UNUSED(module),
                           PyObject* Py_UNUSED(unused)) {
  st_drop_call();
  Py_RETURN_NONE;
}

static PyObject* call_after(PyObject* Py_UNUSED(module), PyObject* args) {
  long ms;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "lO", &ms, &function))
    return NULL;
  st_call_after(ms, function);
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
