/* Heap budget: finds that samples take too much of the process's CPU time.
 *
 *   window   | 256 samples | 256 samples | ...
 *   share    = (time in samples) / (CPU time of the process in the window)
 *
 * Only one sample of ST_BUDGET_STEP is timed, and stands for all of them.  When
 * the share of a window is above the limit, the caller doubles the sampling
 * interval.
 *
 * This unit reads no clock.  The caller holds the heap profile's mutex.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_BUDGET_STEP = 16, ST_BUDGET_WINDOW = 256 };

struct st_heap_budget {
  /* The largest share of the CPU time, in thousandths; 0 for no limit. */
  uint32_t limit;
  uint32_t samples; /* In this window. */
  uint64_t spent;   /* In ns, of the timed samples of this window. */
  uint64_t began;   /* The process's CPU time in ns at the window's start. */
};

/* Counts a sample.  Returns whether it has to be timed. */
bool st_heap_budget_is_timed(struct st_heap_budget* b);
/* Adds the duration of a timed sample, in ns.  Returns whether the window is
 * complete: the caller then calls st_heap_budget_is_over(). */
bool st_heap_budget_add(struct st_heap_budget* b, uint64_t duration);
/* Ends the window.  `cpu_time` is the CPU time of the process, in ns.  Returns
 * whether the share is above the limit. */
bool st_heap_budget_is_over(struct st_heap_budget* b, uint64_t cpu_time);
