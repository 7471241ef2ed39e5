/* Looks: a look reads the stacks of all threads of this process once, without
 * the GIL. A native thread, the look thread, does so about every millisecond.
 *
 * For each thread, a look
 *   - reads the stack (probes/stack_reader.h), unless the thread has used no CPU
 *     time since the last look: then its stack is unchanged
 *   - passes the stack to sightings.h when it is found for the first and for the
 *     second time.  The second time confirms the first.  After that only the time
 *     `until` which the stack was unchanged is updated
 *   - arms the functions on the stack that are switched off: the interpreter
 *     reports their next calls
 *   - adds the time since the last look to the functions on the stack
 *
 * Looks take at most 1/LOOK_SHARE of a CPU: with thousands of threads they are
 * less frequent. Each look also arms one more function, in turn, so that a
 * function whose calls have become longer is recorded by events again.
 *
 * Fork: st_look_stop() is called before a fork, and st_look_start() after it.
 * Otherwise the child has no look thread, and its looks are marked as stopped.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ST_LOOK_PERIOD_NS = 1250000 };

/* The number of looks since the process began, and the total running and
 * waiting time that looks found, summed over all threads. The look thread
 * writes these values, and other threads read them for the summary. Each value
 * is used independently of the others, so relaxed access suffices. */
struct st_look_totals {
  _Atomic uint64_t looks, running_ns, waiting_ns, longest_gap_ns;
};

extern struct st_look_totals st_look_totals;

/* Starts the look thread.  Returns false if the system lets no process read its
 * own memory, or if no thread can be started. */
bool st_look_start(void);
/* Stops the look thread and joins it.  Does nothing if it does not run. */
void st_look_stop(void);

/* Maps a file that contains the threshold, a u64 in ns, which may rise later.
 * If `path` is NULL, the threshold stays as it is.  May be called only while no
 * look thread runs.  Returns false if the file cannot be mapped. */
bool st_look_use_threshold(const char* path);
