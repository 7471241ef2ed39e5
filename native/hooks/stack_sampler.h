/* Stack sampler: a native thread, the sampling thread, that reads the stacks of
 * all threads of this process about every millisecond, without the GIL.  One
 * pass over all threads is a round; the stack of one thread in it is a sample.
 *
 * For each thread, a round
 *   - reads the stack (probes/stack_reader.h).  If the thread has used no CPU
 *     time since its last sample, its stack is unchanged and is not read;
 *   - passes a new sample to stack_samples.h.  If the next sample is the same,
 *     it is passed, too, and confirms the first one.  For further samples that
 *     are the same, only `until` is updated, the end of the time in which the
 *     stack is unchanged;
 *   - arms the functions on the stack that are switched off: the interpreter
 *     reports their next calls.  If such a call is new, the stack is read once
 *     more after ST_SECOND_LOOK_NS;
 *   - adds the running and waiting time since the last sample to the functions
 *     on the stack.
 *
 * Where the interpreter reports no calls (CPython 3.11), nothing is armed.  Calls
 * are told apart by their frames, and by marks: if there are new calls, the
 * merging thread (merging_thread.h) gives each open call a frame object.
 *
 * Sampling takes at most 1/SAMPLING_SHARE of a CPU: with thousands of threads
 * the rounds are less frequent.  Each round also arms one more function, in
 * turn, so that a function whose calls have become longer is recorded by events
 * again.
 *
 * Fork: st_sampler_stop() is called before a fork, and st_sampler_start() after
 * it.  Otherwise the child has no sampling thread, and the sampler is marked as
 * stopped.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hot.h"

enum {
  /* The shortest pause between two rounds. */
  ST_SAMPLING_PAUSE_NS = 1250000,
  /* A call is shown if it is open in a round, and still open after this time.
   * This is the threshold at the start of the recording. */
  ST_SECOND_LOOK_NS = 50000,
};

/* How many stacks were sampled, also those that were not passed on because they were
 * unchanged. */
extern ST_OWN _Atomic uint64_t st_sampled_stacks;

/* Starts the sampling thread.  Returns false if the system lets no process read
 * its own memory, or if no thread can be started. */
bool st_sampler_start(void);
/* Stops the sampling thread and joins it.  Does nothing if it does not run. */
void st_sampler_stop(void);
/* Forgets what it knows of the threads: a new recording begins, or this process
 * is a new child.  After a mere stop for a fork, the next sample of a thread
 * follows its last one.  May be called only while no sampling thread runs. */
void st_sampler_forget_threads(void);
/* The time before now is no gap in the samples: nothing was recorded.  May be
 * called only while no sampling thread runs. */
void st_sampler_forget_gap(void);
