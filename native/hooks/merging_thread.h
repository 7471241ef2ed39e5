/* Merging thread: merges stack samples where no event does.
 *
 * Each event of an interpreter that reports calls merges the samples in the ring
 * (stack_samples.h), and writes the BEGINs of calls that have become long enough.
 * A program that makes no events may be killed before the next one.  So if
 * samples have waited for ST_MERGING_AGE_NS, or a thread has had the same stack
 * for so long, the sampling thread asks this native thread to take the GIL and
 * do both.  It is started when it is first asked, and it sleeps otherwise.
 *
 * On CPython 3.11 there are no events.  There the thread is started at once; it
 * merges every ST_MERGING_PAUSE_MS, and at once if the sampling thread asks for
 * it.
 *
 * It is not the sampling thread, because a thread may wait long for the GIL.
 *
 * The thread runs only while the sampling thread runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_MERGING_PAUSE_MS = 50, ST_MERGING_AGE_NS = 200000000 };

struct st_merging {
  bool (*is_needed)(void); /* Called without the GIL, on CPython 3.11. */
  void (*merge)(void);     /* Called with the GIL. */
  /* Writes the BEGINs of open calls, after a merge.  Called with the GIL. */
  void (*write_open)(void);
};

/* Sets the functions.  On CPython 3.11, starts the thread.  Returns false if it
 * cannot be started. */
bool st_merging_start(const struct st_merging* functions);
/* Stops the thread and joins it.  The caller holds the GIL, which is released
 * meanwhile.  The sampling thread does not run any more. */
void st_merging_stop(void);
/* Makes the thread merge soon, if it runs.  May be called without the GIL. */
void st_merging_wake(void);
/* Two functions for the sampling thread, for each thread and for each round.  A
 * thread has had the same stack since the time `since`.  The samples in the ring
 * wait since the time `waiting_since`; 0 if there are none. */
void st_merging_note_same(uint64_t since, uint64_t now);
void st_merging_follow(uint64_t waiting_since, uint64_t now);
/* Before each merge on CPython 3.11 the thread marks all open calls
 * (st_python_mark_calls).  Returns the number of these passes that are done.  May
 * be called without the GIL. */
uint64_t st_marking_done(void);
/* Returns the kernel's id of the thread; 0 if it does not run. */
uint64_t st_merging_thread_id(void);
