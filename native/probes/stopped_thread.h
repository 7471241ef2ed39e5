/* Stopped thread: stops a thread of another process for some microseconds, to
 * read its registers.
 *
 *   PTRACE_SEIZE       traces the thread, which runs on
 *   PTRACE_INTERRUPT   it stops as soon as it is in the kernel
 *   wait               at most limit_ns; later it is waited for by poll
 *   PTRACE_DETACH      it runs on, as if nothing had happened
 *
 * Only threads that run should be stopped.  A few system calls that wait, such
 * as epoll_wait, end with EINTR when their thread is stopped, as they do after
 * SIGSTOP and SIGCONT.  If a signal for the thread arrives meanwhile, it is
 * passed on.
 *
 * No thread stays stopped: when the calling thread ends, in any way, the kernel
 * detaches all that it traces.  A thread must be released by the thread that
 * has stopped it.  One thread is traced at a time: a process that calls exec
 * waits until all its traced threads are released.
 *
 * The process may be a child of the caller's.  Who waits for the child's end then
 * sees the stops, too, as CLD_TRAPPED, and must leave them (WNOWAIT).  The child's
 * end is left to them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "probes/eh_frame.h"

struct st_stopped_thread {
  int tid;    /* The thread that is traced; 0 if there is none. */
  int signal; /* A signal that it gets when it is released; 0 for none. */
  /* A time at which it had not stopped yet (CLOCK_MONOTONIC). */
  uint64_t since_ns;
};

enum st_stop_result {
  ST_STOP_DONE,
  /* It is traced by another process, or there is no right to trace it. */
  ST_STOP_REFUSED,
  /* It has not stopped in time: call st_stopped_thread_poll until it returns
   * true. */
  ST_STOP_LATE,
  ST_STOP_GONE,
};

/* Stops a thread.  `t->tid` must be 0. */
enum st_stop_result st_stopped_thread_stop(struct st_stopped_thread* t, int tid,
                                           uint64_t limit_ns);
/* Reads the registers of the stopped thread.  Returns false if it has ended. */
bool st_stopped_thread_registers(const struct st_stopped_thread* t,
                                 struct st_registers* registers);
/* Lets the stopped thread run on. */
void st_stopped_thread_release(struct st_stopped_thread* t);
/* Releases the thread if it has stopped meanwhile.  Returns whether no thread is
 * traced any more. */
bool st_stopped_thread_poll(struct st_stopped_thread* t);
