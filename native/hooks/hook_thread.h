/* What the hooks of waits keep for each thread.  It is one variable: after a wait
 * each one costs another line of the processor's caches, and one of the linker's
 * table of variables.
 */
#pragma once

#include "core/fast_clock.h"
#include "core/hot.h"
#include "hooks/tracer.h"

struct st_hook_thread {
  /* The clock of the thread; NULL before its first use. */
  struct st_clock_pair* clock;
  /* Whether the thread writes the slice of a wait: that may wait, too. */
  bool writes_wait;
};

extern ST_OWN _Thread_local struct st_hook_thread st_hook_thread;

/* The time of the trace's clock, without a call of stretto._native: after a wait
 * the processor foretells no indirect call, and has none of its code. */
static inline uint64_t st_thread_now(struct st_hook_thread* t) {
  if (ST_UNLIKELY(!t->clock))
    t->clock = st_hooks.api->clock();
  uint64_t now = st_clock_pair_now(t->clock);
  return ST_LIKELY(now != 0) ? now : st_hooks.api->now();
}
