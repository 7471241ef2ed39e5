/* The time of the trace's clock, without a call of stretto._native: after a wait
 * the processor foretells no indirect call, and has none of its code.
 */
#pragma once

#include "core/fast_clock.h"
#include "hooks/tracer.h"

/* The clock of the calling thread; NULL before its first use. */
extern _Thread_local struct st_clock_pair* st_thread_clock;

static inline uint64_t st_thread_now(void) {
  struct st_clock_pair* clock = st_thread_clock;
  if (ST_UNLIKELY(!clock))
    clock = st_thread_clock = st_hooks.api->clock();
  uint64_t now = st_clock_pair_now(clock);
  return ST_LIKELY(now != 0) ? now : st_hooks.api->now();
}
