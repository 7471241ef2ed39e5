/* Heap pace: the sampling interval, which doubles while samples cost too much.
 *
 *   uint64_t began = st_heap_pace_begin(pace);     (one of 32 samples is timed)
 *   ... take the sample ...
 *   st_heap_pace_end(pace, began);                 (heap_budget.h decides)
 *
 * The caller holds the heap profile's mutex, except to read `interval`.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "probes/heap_budget.h"

struct st_heap_pace {
  _Atomic uint64_t interval; /* In bytes. */
  uint64_t max_interval;
  uint32_t slower;     /* How often the interval was doubled. */
  uint64_t clock_cost; /* What reading the clock adds to a duration, in ns. */
  struct st_heap_budget budget;
};

/* Starts.  `limit` is the largest share of the process's CPU time that samples
 * may take, in thousandths; 0 for no limit. */
void st_heap_pace_start(struct st_heap_pace* p, uint64_t interval,
                        uint64_t max_interval, uint32_t limit);
/* Returns the thread's CPU time if the sample has to be timed; else 0. */
uint64_t st_heap_pace_begin(struct st_heap_pace* p);
/* Ends a sample.  `began` is what st_heap_pace_begin() has returned. */
void st_heap_pace_end(struct st_heap_pace* p, uint64_t began);
