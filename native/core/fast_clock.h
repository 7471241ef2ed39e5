/* Fast clock: CLOCK_BOOTTIME for less than half of what reading it costs.
 *
 * Problem: a read of the clock is the largest part of an event's cost, about
 * 22 ns, of which the time stamp counter is 10.  The kernel's clock is that
 * counter, scaled; so each thread keeps a recent pair of both and scales by
 * itself, for a short span, then reads the clock again:
 *
 *   now = ns + ((counter - base) * rate >> 24)     while counter - base < span
 *
 *   |-- span, about 100 us --|-- span --| ...      a thread's time
 *   ^ pair                   ^ pair
 *
 * Error: a pair is good to some 10 ns (the counter is read before and after
 * the clock; pairs that an interrupt tore apart are read again), the rate to
 * well below 1 part in 10^5, which is 1 ns over a span.  So a thread's time is
 * within some 20 ns of the clock, never runs backwards, and different threads
 * agree to some 50 ns: less than a message between them takes.
 *
 * The rate is measured over windows of 10 ms and more, and measured again all
 * the time, so it follows the kernel's own corrections (at most 500 ppm).
 * Until the first window has passed, where the counter isn't the kernel's clock
 * source, isn't invariant, or the machine isn't x86-64, the clock is read as
 * usual.  A counter that jumps (suspend, migration) ends the span at once.
 *
 * Threads: the pair is thread-local; the rate is one atomic.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#define ST_HAS_COUNTER 1
static inline uint64_t st_counter(void) {
  return __rdtsc();
}
#else
#define ST_HAS_COUNTER 0
static inline uint64_t st_counter(void) {
  return 0;
}
#endif

enum { ST_RATE_SHIFT = 24 };

struct st_clock_pair {
  uint64_t base; /* counter */
  uint64_t span; /* counts for which the pair is good; 0: not at all */
  uint64_t rate; /* ns per count, shifted by ST_RATE_SHIFT */
  uint64_t ns;
  uint64_t last; /* handed out */
};

extern _Thread_local struct st_clock_pair st_clock_pair;

/* Reads the clock, and makes a new pair if it can. */
uint64_t st_fast_clock_sync(void);

/* Now, in nanoseconds of CLOCK_BOOTTIME. */
static inline uint64_t st_fast_now(void) {
  struct st_clock_pair* p = &st_clock_pair;
  uint64_t elapsed = st_counter() - p->base;
  if (__builtin_expect(elapsed >= p->span, 0))
    return st_fast_clock_sync();
  return p->last = p->ns + ((elapsed * p->rate) >> ST_RATE_SHIFT);
}

/* Whether the counter is what the kernel's clock is made of. */
bool st_fast_clock_available(void);
