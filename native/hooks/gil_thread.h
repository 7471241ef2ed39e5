/* GIL thread: a native thread that works with the GIL from time to time.
 *
 *   pause | is_needed()? | pause | is_needed()? -> GIL, work() | pause | ...
 *
 * It takes the GIL only if there is work.  Meanwhile it begins no garbage collection
 * (held_collections.h).  Signals of the program are blocked in it.
 *
 * Life cycle: start with or without the GIL, stop with it.  A fork ends the thread
 * in the child: the user of the thread calls st_gil_thread_forget() there.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct st_gil_thread {
  /* Set by the user, before the start. */
  const char* name; /* The thread's name, at most 15 characters. */
  int pause_ms;
  bool (*is_needed)(void); /* Called without the GIL. */
  void (*work)(void);      /* Called with the GIL. */
  /* Private. */
  pthread_t thread;
  _Atomic pid_t kernel_id; /* The thread's gettid(), which it stores itself. */
  pthread_mutex_t lock;
  pthread_mutex_t joining; /* Held by the thread that joins this one. */
  pthread_cond_t changed;
  _Atomic bool running;
  bool initialized, stopping, woken;
};

/* Whether the calling thread is one of these threads. */
bool st_gil_thread_is_current(void);
/* Starts the thread, unless it runs.  Returns false if that fails. */
bool st_gil_thread_start(struct st_gil_thread* t);
/* Stops and joins the thread, if it runs.  Releases the GIL meanwhile; another
 * thread that stops it, too, waits. */
void st_gil_thread_stop(struct st_gil_thread* t);
/* Ends the pause of a started thread.  May be called without the GIL. */
void st_gil_thread_wake(struct st_gil_thread* t);
/* In the child of a fork: the thread doesn't run. */
void st_gil_thread_forget(struct st_gil_thread* t);
