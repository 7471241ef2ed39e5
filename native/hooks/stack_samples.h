/* Stack samples: a ring buffer that passes the samples of the sampling thread
 * (stack_sampler.h) to the lists of open calls (shown_calls.h).  A sample is
 * the stack of one thread at one time.
 *
 *   stack_sampler.c,      --- ring of words --->   the next thread that holds
 *   without the GIL                                the GIL
 *
 *   a sample   kind and number of frames | thread | time | time of the sample
 *              before | number of known calls | wait | CPU time | frames, the
 *              innermost first
 *   a gap      kind | begin | end; becomes the instant `no stack samples`
 *
 * Where a thread alone has no samples for as long, its next sample tells it: then
 * its track gets an instant (probes/sample_gaps.h).  A sample that cannot be
 * merged is dropped: the sampling thread is made to pass another one.
 *
 * Each event first merges all samples in the ring, so that a thread's frames
 * are those at the time of the sample:
 *
 *   no event since the sample   the sample must contain all frames that events
 *                               reported, in their order
 *   events since the sample     the thread's present stack is walked; its
 *                               frames count if the sample contains them or
 *                               events reported them
 *
 * The interpreter does not report calls of functions that are switched off.  If
 * a sample contains such a call for the first time, the call is inserted
 * between its neighbours.  If the next sample contains a call at the same
 * address, the call is confirmed.  It is the same call, because the function
 * was armed in between: the interpreter would have reported a new call.  The
 * second look of a round (stack_sampler.h) is such a sample.  A function that is
 * switched off while a call of it is open is not armed until the next sample.
 * Then that call may have ended since, so it may begin as late as that sample.
 *
 * If the thread of a sample is in a wait that hooks measure (lock_waits.h,
 * io_waits.h), the calls around the wait begin before it.  The end of the wait
 * merges the samples in the ring, too, and these calls end after it.  A sample that
 * comes later than that is dropped: its calls could not be put around the wait.
 *
 * On CPython 3.11 the interpreter reports no calls.  There merging_thread.h
 * merges the samples, and a sample says how many of its outermost frames are
 * certainly the calls of the sample before.
 *
 * A full ring drops samples.  Calls that only those samples contain may then be
 * missing; all other calls are complete.
 */
#pragma once

#include "hooks/shown_calls.h"
#include "probes/stack_reader.h"

struct st_stack_sample {
  struct st_last_sample* thread;
  uint64_t thread_id, native_id;
  /* The stack is that of `time`, or of a moment between `time` and `read` if the
   * thread ran meanwhile.  `before` is the `time` of the sample before. */
  uint64_t time, read, before;
  bool gone; /* Whether the thread of this sample has ended. */
  /* The thread has waited since the sample before: the instruction in which it
   * waits, 0 if it does not wait, and the earliest begin of the wait. */
  uint64_t instruction, wait_begin;
  /* The latest end of the wait that the samples before have found. */
  uint64_t wait_end;
  uint64_t cpu_ns; /* The CPU time that the thread had used. */
  /* How many of the outermost frames are certainly the calls of the sample
   * before.  Where calls are not reported, the other frames are other calls, also
   * those of the same functions at the same addresses. */
  int known;
  int depth;
  const struct st_stack_frame* frames;
};

/* Puts a sample into the ring.  Called by the sampling thread.  Returns false
 * if the ring is full. */
bool st_samples_put(const struct st_stack_sample* sample);
/* Does the same with a gap: no stack was read between two times. */
bool st_samples_put_gap(uint64_t begin, uint64_t end);
bool st_samples_waiting(void);
/* Returns whether a quarter of the ring is used. */
bool st_samples_are_many(void);
/* Returns the time of the oldest sample in the ring; 0 if there is none.  Called
 * by the sampling thread. */
uint64_t st_samples_wait_since(void);

/* The functions from here on need the GIL. */

void st_samples_start(void);
/* Merges the stacks in the ring into the lists of open calls (shown_calls.h).
 * `entering`: the call of the calling thread's innermost frame is about to
 * begin.  Samples of the time `before` and later are left in the ring: an event
 * of this time is not handled yet.  Returns false if another thread is merging
 * them. */
bool st_samples_take(bool entering, uint64_t before);

extern _Atomic uint64_t st_samples_lost, st_samples_torn;
