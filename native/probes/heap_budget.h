/* Heap budget: finds that samples take too much of the process's CPU time.
 *
 *   window   | 256 samples or more, 50 ms of CPU time or more | ...
 *   share    = (time in samples) / (CPU time of the process in the window)
 *
 * Only one sample of ST_BUDGET_STEP is timed, and stands for all of them.  When
 * the share of a window is above the limit, the caller doubles the sampling
 * interval.  Shorter windows would take a burst of allocations for the whole.
 * A sample that took very long was interrupted (page faults, other virtual
 * machines): only ST_BUDGET_MAX_NS of it count.
 *
 * This unit reads no clock.  The caller holds the heap profile's mutex.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
  ST_BUDGET_STEP = 32,
  ST_BUDGET_MAX_NS = 20000,
  ST_BUDGET_WINDOW = 256,
  ST_BUDGET_CPU_NS = 50000000,
};

struct st_heap_budget {
  /* The largest share of the CPU time, in thousandths; 0 for no limit. */
  uint32_t limit;
  uint32_t samples; /* In this window, or in this part of it. */
  uint64_t spent;   /* In ns, of the timed samples of this window. */
  uint64_t began;   /* The process's CPU time in ns at the window's start. */
};

/* Counts a sample.  Returns whether it has to be timed. */
bool st_heap_budget_is_timed(struct st_heap_budget* b);
/* Adds the duration of a timed sample, in ns.  Returns whether the window is
 * complete: the caller then calls st_heap_budget_is_over(). */
bool st_heap_budget_add(struct st_heap_budget* b, uint64_t duration);
/* Ends the window, unless it is too short: then it goes on.  `cpu_time` is the
 * CPU time of the process, in ns.  Returns whether the share is above the
 * limit. */
bool st_heap_budget_is_over(struct st_heap_budget* b, uint64_t cpu_time);
