#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/gil_thread.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/thread_join.h"
#include "hooks/held_collections.h"
#include "hooks/python_layout.h"

static _Thread_local bool is_current;

bool st_gil_thread_is_current(void) {
  return is_current;
}

static struct timespec after_ms(int ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_nsec += ms * 1000000L;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

/* Returns false if the thread has to stop. */
static bool pause_or_stop(struct st_gil_thread* t) {
  struct timespec end = after_ms(t->pause_ms);
  pthread_mutex_lock(&t->lock);
  while (!t->stopping && !t->woken &&
         pthread_cond_timedwait(&t->changed, &t->lock, &end) == 0) {
  }
  t->woken = false;
  bool stopping = t->stopping;
  pthread_mutex_unlock(&t->lock);
  return !stopping;
}

static void work(struct st_gil_thread* t, PyThreadState* state) {
  st_python_request_gil();
  PyEval_RestoreThread(state);
  int held = st_hold_collections();
  t->work();
  st_release_collections(held);
  PyEval_SaveThread();
}

static void* run(void* self) {
  struct st_gil_thread* t = self;
  is_current = true;
  t->kernel_id = (pid_t)syscall(SYS_gettid);
  prctl(PR_SET_NAME, t->name);
  prctl(PR_SET_TIMERSLACK, 1);
  PyThreadState* state = PyThreadState_New(PyInterpreterState_Main());
  if (!state)
    return NULL;
  while (pause_or_stop(t)) {
    if (t->is_needed())
      work(t, state);
  }
  PyEval_RestoreThread(state);
  PyThreadState_Clear(state);
  PyThreadState_DeleteCurrent();
  return NULL;
}

static void initialize(struct st_gil_thread* t) {
  pthread_condattr_t attributes;
  pthread_mutex_init(&t->lock, NULL);
  pthread_mutex_init(&t->joining, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&t->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  t->initialized = true;
}

bool st_gil_thread_start(struct st_gil_thread* t) {
  if (t->running)
    return true;
  if (!t->initialized)
    initialize(t);
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  t->stopping = t->woken = false;
  t->running = pthread_create(&t->thread, NULL, run, t) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return t->running;
}

static void stop_and_join(struct st_gil_thread* t) {
  pthread_mutex_lock(&t->lock);
  t->stopping = true;
  pthread_cond_signal(&t->changed);
  pthread_mutex_unlock(&t->lock);
  st_thread_join(t->thread, (const pid_t*)&t->kernel_id);
  t->kernel_id = 0;
  t->running = false;
}

void st_gil_thread_stop(struct st_gil_thread* t) {
  if (!t->running || pthread_equal(t->thread, pthread_self()))
    return;
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(&t->joining);
  if (t->running)
    stop_and_join(t);
  pthread_mutex_unlock(&t->joining);
  Py_END_ALLOW_THREADS
}

void st_gil_thread_wake(struct st_gil_thread* t) {
  if (!t->initialized)
    return;
  pthread_mutex_lock(&t->lock);
  t->woken = true;
  pthread_cond_signal(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

void st_gil_thread_forget(struct st_gil_thread* t) {
  t->running = t->initialized = false;
  t->kernel_id = 0;
}
