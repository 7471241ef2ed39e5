/* The look: a native thread that reads the stack of each thread of this process
 * every millisecond or so, without the GIL.
 *
 *   each thread   CPU time as at the last look: it is where it was
 *                 else its stack is read (probes/stack_reader.h)
 *     a new stack, or the second look at one  ->  sightings.h
 *     its functions that are switched off are armed: the next call is reported
 *     the time since the last look is added to the functions on the stack
 *
 * The second look at a stack is handed on, too: it confirms what the first saw.
 * From then on only `until` moves.
 *
 * The look takes at most one part in LOOK_SHARE of a CPU: with thousands of
 * threads it comes more rarely.  It arms some functions in turn, as well, so that
 * one whose calls have become longer is noticed and recorded by events again.
 *
 * Fork: stop it before, start it after; where that was not done the child's copy
 * has no thread, and forgets about it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ST_LOOK_PERIOD_NS = 1250000 };

/* Times of all threads that were looked at, since the process began.  The look's
 * thread alone writes them, others read them for the summary: relaxed, as each is
 * a number of its own. */
struct st_look_totals {
  _Atomic uint64_t looks, running_ns, waiting_ns, longest_gap_ns;
};

extern struct st_look_totals st_look_totals;

/* False: this system lets no process read its own memory, or there is no
 * thread to be had. */
bool st_look_start(void);
/* Joins the thread.  Idempotent. */
void st_look_stop(void);

/* Maps a file that holds the threshold, as a u64 in ns, which may rise; NULL: no
 * file, the threshold stays.  Call it while no looks run.  Returns false if the
 * file can't be mapped. */
bool st_look_use_threshold(const char* path);
