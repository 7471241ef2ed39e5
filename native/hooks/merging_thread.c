#include "hooks/merging_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/thread_join.h"
#include "hooks/python_layout.h"

static struct {
  struct st_merging functions;
  pthread_t thread;
  /* The thread's gettid(), which the thread itself stores. */
  _Atomic pid_t kernel_id;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool running, stopping, woken;
} merger = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic uint64_t done;

/* Sleeps until it is time to merge.  Returns false if the thread has to stop. */
static bool wait_for_samples(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_nsec += ST_MERGING_PAUSE_MS * 1000000L;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  pthread_mutex_lock(&merger.lock);
  while (!merger.stopping && !merger.woken &&
         pthread_cond_timedwait(&merger.changed, &merger.lock, &t) == 0) {
  }
  merger.woken = false;
  bool stopping = merger.stopping;
  pthread_mutex_unlock(&merger.lock);
  return !stopping;
}

static void mark_calls(void) {
  st_python_mark_calls();
  atomic_fetch_add(&done, 1);
}

static void* run(void* Py_UNUSED(unused)) {
  merger.kernel_id = (pid_t)syscall(SYS_gettid);
  prctl(PR_SET_NAME, "stretto-calls");
  prctl(PR_SET_TIMERSLACK, 1);
  PyThreadState* state = PyThreadState_New(PyInterpreterState_Main());
  if (!state)
    return NULL;
  while (wait_for_samples()) {
    if (!merger.functions.is_needed())
      continue;
    st_python_request_gil();
    PyEval_RestoreThread(state);
    int held = st_python_hold_collections();
    mark_calls();
    merger.functions.merge();
    st_python_release_collections(held);
    PyEval_SaveThread();
  }
  PyEval_RestoreThread(state);
  PyThreadState_Clear(state);
  PyThreadState_DeleteCurrent();
  return NULL;
}

static void forget(void) {
  merger.running = false;
  merger.kernel_id = 0;
  pthread_mutex_init(&merger.lock, NULL);
}

static void initialize(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&merger.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_atfork(NULL, NULL, forget);
}

bool st_merging_start(const struct st_merging* functions) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (ST_CALLS_ARE_REPORTED || merger.running)
    return true;
  pthread_once(&once, initialize);
  merger.functions = *functions;
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  merger.stopping = merger.woken = false;
  merger.running = pthread_create(&merger.thread, NULL, run, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return merger.running;
}

void st_merging_stop(void) {
  if (!merger.running || pthread_equal(merger.thread, pthread_self()))
    return;
  pthread_mutex_lock(&merger.lock);
  merger.stopping = true;
  pthread_cond_signal(&merger.changed);
  pthread_mutex_unlock(&merger.lock);
  Py_BEGIN_ALLOW_THREADS
  st_thread_join(merger.thread, (const pid_t*)&merger.kernel_id);
  Py_END_ALLOW_THREADS
  merger.running = false;
  merger.kernel_id = 0;
}

void st_merging_wake(void) {
  pthread_mutex_lock(&merger.lock);
  merger.woken = true;
  pthread_cond_signal(&merger.changed);
  pthread_mutex_unlock(&merger.lock);
}

uint64_t st_marking_done(void) {
  return done;
}

uint64_t st_merging_thread_id(void) {
  return (uint64_t)merger.kernel_id;
}
