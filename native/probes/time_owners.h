/* Time owners: which functions the time between two samples of a thread belongs
 * to, where only samples tell.
 *
 *   sample      sample      sample
 *     |== price ==|..........|     the thread ran in `price`, and waits now
 *
 * Running time belongs to a function that was found running.  A thread that is
 * found waiting has run in other calls, most likely: that time is kept until the
 * thread is found running, and belongs to the function in which it runs then.
 * As samples are taken at any time, each function gets its share.
 *
 * Waiting time belongs to a function if the thread has not run since the sample
 * before, or if some thread was ever found blocked in it.  A function that only
 * computes is seen just after a wait of another one, too: then it belongs to the
 * function in which the thread has waited last.  A thread that gets no CPU, or not
 * the GIL, waits in such a function now and then, but later waits are no more
 * likely to be its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is known of a thread.  Functions have numbers; 0 is none. */
struct st_time_owners {
  uint32_t waited_in; /* The function in which the thread has waited last. */
  uint64_t kept_ns;   /* Running time that belongs to no function yet. */
};

/* Returns the running time that belongs to the function of a sample.  The thread
 * has run for `ran` ns since the sample before; `runs`: this sample has found it
 * running. */
uint64_t st_owned_run(struct st_time_owners* owners, uint64_t ran, bool runs);
/* Returns the function to which the waiting time before a sample belongs.
 * `function` is that of the sample; `waits`: the thread has waited in it all the
 * time; `blocks`: some thread was found blocked in it. */
uint32_t st_wait_owner(struct st_time_owners* owners, uint32_t function,
                       bool waits, bool blocks);
