/* Merging thread: merges stack samples on CPython 3.11.
 *
 * Where the interpreter reports calls, each event merges the samples in the
 * ring (stack_samples.h).  On 3.11 there are no events, so a native thread takes
 * the GIL and merges them: every ST_MERGING_PAUSE_MS, and at once if the
 * sampling thread asks for it.
 *
 * It is not the sampling thread, because a thread may wait long for the GIL.
 *
 * The thread runs while the sampling thread runs.  On later versions these
 * functions do nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_MERGING_PAUSE_MS = 50 };

struct st_merging {
  bool (*is_needed)(void); /* Called without the GIL. */
  void (*merge)(void);     /* Called with the GIL. */
};

/* Starts the thread.  Returns false if it cannot be started. */
bool st_merging_start(const struct st_merging* functions);
/* Stops the thread and joins it.  The caller holds the GIL, which is released
 * meanwhile. */
void st_merging_stop(void);
/* Makes the thread merge soon.  May be called without the GIL. */
void st_merging_wake(void);
/* Before each merge the thread marks all open calls (st_python_mark_calls).
 * Returns the number of these passes that are done.  May be called without the
 * GIL. */
uint64_t st_marking_done(void);
/* Returns the kernel's id of the thread; 0 if it does not run. */
uint64_t st_merging_thread_id(void);
