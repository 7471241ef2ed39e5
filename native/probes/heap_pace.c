#include "probes/heap_pace.h"

#include <time.h>

static uint64_t now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Returns the shortest duration that two readings of the clock measure. */
static uint64_t clock_cost(void) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 32; i++) {
    uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t cost = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    least = cost < least ? cost : least;
  }
  return least;
}

void st_heap_pace_start(struct st_heap_pace* p, uint64_t interval,
                        uint64_t max_interval, uint32_t limit) {
  p->interval = interval;
  p->max_interval = max_interval;
  p->slower = 0;
  p->clock_cost = clock_cost();
  p->budget = (struct st_heap_budget){.limit = limit};
}

static void sample_less(struct st_heap_pace* p) {
  uint64_t interval = p->interval * 2;
  if (interval > p->max_interval)
    return;
  p->interval = interval;
  p->slower++;
}

uint64_t st_heap_pace_begin(struct st_heap_pace* p) {
  return st_heap_budget_is_timed(&p->budget) ? now_ns(CLOCK_THREAD_CPUTIME_ID)
                                             : 0;
}

void st_heap_pace_end(struct st_heap_pace* p, uint64_t began) {
  if (!began)
    return;
  uint64_t duration = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
  duration = duration > p->clock_cost ? duration - p->clock_cost : 0;
  if (st_heap_budget_add(&p->budget, duration) &&
      st_heap_budget_is_over(&p->budget, now_ns(CLOCK_PROCESS_CPUTIME_ID)))
    sample_less(p);
}
