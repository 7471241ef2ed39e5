#include "io_thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread_join.h"

enum { SOCKET, WAKE, FD_COUNT };

struct st_io_thread {
  int socket;
  /* The send queue that the thread drains, or NULL. */
  struct st_send_queue* queue;
  st_on_readable on_readable;
  void* self;
  struct st_wake_pipe wake;
  struct st_fork_entry fork;
  /* Whether the thread has to stop.  The flag is set before a byte is written
   * to the wake pipe.  So a thread that has read the byte sees the flag. */
  _Atomic bool stopping;
  /* Whether the thread runs.  The flag is written only under the mutex.  It is
   * also read without the mutex, as a hint that orders no other memory
   * access. */
  _Atomic bool running;

  /* This mutex allows only one start or stop at a time. */
  pthread_mutex_t mutex;
  pthread_t thread;
  pid_t kernel_id; /* The thread's gettid(), which the thread itself stores. */

  /* The members below are accessed only by the thread itself. */
  bool reading;
  /* Whether the thread's own callback has destroyed the thread object. */
  bool orphaned;
};

/* The IPC thread object that runs on the calling thread, or NULL. */
static _Thread_local struct st_io_thread* t_current;

static void release(struct st_io_thread* t) {
  st_fork_unregister(&t->fork);
  st_wake_pipe_close(&t->wake);
  pthread_mutex_destroy(&t->mutex);
  free(t);
}

static void wait_for_events(struct st_io_thread* t, struct pollfd* fds) {
  bool writing = t->queue && st_send_queue_pending(t->queue) > 0;
  short events = (short)((t->reading ? POLLIN : 0) | (writing ? POLLOUT : 0));
  /* A descriptor without requested events is left out: poll would report a
   * closed peer again and again. */
  fds[SOCKET] = (struct pollfd){events ? t->socket : -1, events, 0};
  fds[WAKE] = (struct pollfd){t->wake.polled.fd, POLLIN, 0};
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  int ready = poll(fds, FD_COUNT, -1);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  if (ready < 0)
    fds[SOCKET].revents = fds[WAKE].revents = 0;
}

/* Called when the program has closed a descriptor of this thread. With a closed
 * descriptor poll would return at once each time, or report events of another
 * file. */
static bool call_back_closed(struct st_io_thread* t) {
  if (t->reading)
    t->on_readable(t->self);
  return false;
}

/* Handles the events that poll has reported.  Returns false if the thread has
 * to end: its object was destroyed, it was stopped, or no descriptor is left to
 * poll. */
static bool handle_events(struct st_io_thread* t, const struct pollfd* fds) {
  bool closed = fds[WAKE].revents && !st_wake_pipe_read(&t->wake);
  if (atomic_load(&t->stopping))
    return false;
  const short failed = POLLHUP | POLLERR | POLLNVAL;
  short revents = fds[SOCKET].revents;
  if (closed)
    return call_back_closed(t);

  if (t->queue && (fds[WAKE].revents || (revents & (POLLOUT | failed))))
    st_send_queue_drain(t->queue);
  if (t->reading && (revents & (POLLIN | failed)))
    t->reading = t->on_readable(t->self);
  return !t->orphaned && (t->reading || t->queue);
}

static void* run(void* arg) {
  struct st_io_thread* t = arg;
  struct pollfd fds[FD_COUNT];
  pthread_setname_np(pthread_self(), "stretto-io");
  /* A stop may cancel the thread only while the thread polls. */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  t_current = t;
  t->kernel_id = (pid_t)syscall(SYS_gettid);
  t->reading = true;
  bool go_on = st_own_fd_is_ours(&t->wake.polled) || call_back_closed(t);
  while (go_on) {
    wait_for_events(t, fds);
    go_on = handle_events(t, fds);
  }
  if (t->orphaned)
    release(t);
  return NULL;
}

/* Installs the wake pipe in the send queue while the thread polls.  A push that
 * leaves bytes in the queue then wakes the thread. */
static void set_wake(struct st_io_thread* t, const struct st_wake_pipe* wake) {
  if (t->queue)
    st_send_queue_set_wake(t->queue, wake);
}

static int start_with_signals_blocked(struct st_io_thread* t) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&t->thread, NULL, run, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

int st_io_thread_start(struct st_io_thread* t) {
  if (t_current == t)
    return 0;
  int error = 0;
  pthread_mutex_lock(&t->mutex);
  if (!atomic_load(&t->running)) {
    atomic_store(&t->stopping, false);
    set_wake(t, &t->wake);
    error = start_with_signals_blocked(t);
    atomic_store(&t->running, error == 0);
    if (error)
      set_wake(t, NULL);
  }
  pthread_mutex_unlock(&t->mutex);
  return error;
}

void st_io_thread_ask_to_stop(struct st_io_thread* t) {
  if (t_current == t || !atomic_load(&t->running))
    return;
  atomic_store(&t->stopping, true);
  st_wake_pipe_write(&t->wake);
}

int st_io_thread_stop(struct st_io_thread* t) {
  if (t_current == t)
    return EDEADLK;
  pthread_mutex_lock(&t->mutex);
  if (atomic_load(&t->running)) {
    set_wake(t, NULL);
    atomic_store(&t->stopping, true);
    if (!st_wake_pipe_write(&t->wake))
      pthread_cancel(t->thread);
    st_thread_join(t->thread, &t->kernel_id);
    atomic_store(&t->running, false);
  }
  pthread_mutex_unlock(&t->mutex);
  return 0;
}

bool st_io_thread_running(struct st_io_thread* t) {
  return atomic_load(&t->running);
}

/* The child of a fork has no IPC thread.  If the IPC thread itself called fork,
 * it ends in the child when its callback returns. */
static void forget_in_child(void* self) {
  struct st_io_thread* t = self;
  if (t_current == t)
    t_current = NULL;
  atomic_store(&t->stopping, true);
  pthread_mutex_init(&t->mutex, NULL);
  atomic_store(&t->running, false);
}

struct st_io_thread* st_io_thread_create(int socket,
                                         struct st_send_queue* queue,
                                         st_on_readable on_readable,
                                         void* self) {
  struct st_io_thread* t = calloc(1, sizeof *t);
  if (!t)
    return NULL;
  if (!st_wake_pipe_open(&t->wake)) {
    free(t);
    return NULL;
  }
  t->socket = socket;
  t->queue = queue;
  t->on_readable = on_readable;
  t->self = self;
  pthread_mutex_init(&t->mutex, NULL);
  t->fork = (struct st_fork_entry){.child = forget_in_child, .self = t};
  st_fork_register(&t->fork);
  return t;
}

void st_io_thread_destroy(struct st_io_thread* t) {
  if (t_current == t) {
    set_wake(t, NULL);
    pthread_detach(t->thread);
    t->orphaned = true;
    return;
  }
  st_io_thread_stop(t);
  release(t);
}
