/* Sampled times: gives the time between two samples of a thread to functions.
 *
 *   sample           sample
 *     |== price ==|...|     the thread ran in `price`, and waits now
 *                 ^ last event
 *
 * CPU time is the own time of the innermost function, and time of all functions
 * on the stack.  But a sample is often taken when its thread begins to wait, and
 * the CPU time before was that of calls which have returned.  If the innermost
 * function makes calls that may wait, what the thread ran before its last event
 * counts for the calls of that time (st_last_sample).  Some of them may still be
 * on the stack.  Where the interpreter reports no calls, probes/time_owners.h
 * says which function running time belongs to.  It does so for waiting time in
 * all versions.
 *
 * Limit: of those calls the innermost ST_RUN_CALLS - 1 are known.  If there are
 * more, they are the callers of a known call that is on the stack.
 *
 * Only the sampling thread calls this.
 */
#pragma once

#include "hooks/shown_calls.h"
#include "probes/stack_reader.h"

struct st_sampled_time {
  struct st_last_sample* thread;
  uint64_t native_id, cpu_ns;
  const struct st_stack_frame* frames; /* The innermost one first. */
  int depth;
  /* When the sample was taken, and how long the thread has run and waited since
   * the sample before, in ns. */
  uint64_t time, ran, waited;
  bool runs; /* The thread runs; set where the interpreter reports no calls. */
};

/* Adds the times of a sample to the totals of functions (shared_totals.h). */
void st_sampled_times_add(const struct st_sampled_time* sample);
