/* Joins a thread, and waits until the kernel has removed it.
 *
 * Problem: pthread_join returns as soon as the thread has released its memory.
 * The kernel removes the thread a little later, on a busy machine up to some
 * milliseconds.  Until then it counts in /proc/self/stat.  CPython 3.12 and
 * later read that count at a fork, and warn if there are several threads.
 *
 *   thread:  ... clears its id (pthread_join returns) ... is removed
 *   caller:            st_thread_join: |--- join ---|--- tgkill: ESRCH ---|
 *
 * The wait ends after ST_JOIN_LIMIT_MS at the latest.
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>

enum { ST_JOIN_LIMIT_MS = 5000 };

/* Joins the thread, and waits until the kernel has removed it.  *kernel_id is
 * the result of the thread's gettid().  The thread itself may store this number
 * there, at any time before it ends. */
void st_thread_join(pthread_t thread, const pid_t* kernel_id);
