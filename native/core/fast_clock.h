/* Fast clock: reads CLOCK_BOOTTIME at less than half the cost of clock_gettime.
 *
 * Problem: a read of the clock takes about 22 ns, the largest part of an
 * event's cost; a read of the CPU's counter (x86-64: the time stamp counter;
 * aarch64: cntvct_el0) takes 10 ns.  The kernel computes the clock from this
 * counter by scaling.  So each thread keeps a recent pair of counter and clock,
 * scales the counter itself for a short span, and then reads a new pair:
 *
 *   now = ns + ((counter - base) * rate >> 24)     while counter - base < span
 *
 *   |- 100 us -|-- 200 us --|---- 400 us ----| ... 4 ms     a thread's time
 *   ^ pair     ^ pair       ^ pair
 *
 * A new pair costs some 100 ns.  So its span is twice the last one, up to 4 ms, if
 * the last pair has foretold it to 25 ns; else 100 us.  A thread that has not read
 * its clock for longer than 4 ms may be off by 25 ns for each 4 ms: it is the rate
 * that counts.
 *
 * Error: a pair is accurate to about 10 ns (the counter is read before and
 * after the clock; a pair that took longer than 200 ns is read again). The rate is
 * accurate to well below 1 part in 10^5, which is 40 ns over 4 ms.  So a
 * thread's time differs from the clock by about 20 ns, seldom more, and never
 * decreases.  The times of two threads agree within about 50 ns, less than the
 * latency of a message between them.
 *
 * The rate is measured over windows of at least 10 ms, again and again, so it
 * follows the kernel's own corrections (at most 500 ppm; while they change, spans
 * are short; the span in which they change may end 2 us off).  On aarch64 one
 * count may be 50 ns long, which adds to the error.  A jump of the counter
 * (suspend, migration) ends the span at once.
 *
 * The kernel's clock is read for every time until the first window has passed.
 * It is always read if
 *   - the machine is neither x86-64 nor aarch64, or
 *   - the counter is not invariant, or is not the kernel's clock source, or has
 *     less than 10 MHz.
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
#elif defined(__aarch64__)
#define ST_HAS_COUNTER 1
static inline uint64_t st_counter(void) {
  uint64_t counter;
  /* Without this barrier the processor may execute two reads of the counter in
   * reverse order. */
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(counter)::"memory");
  return counter;
}
#else
#define ST_HAS_COUNTER 0
static inline uint64_t st_counter(void) {
  return 0;
}
#endif

enum { ST_RATE_SHIFT = 24 };

struct st_clock_pair {
  uint64_t base; /* The value of the counter when the pair was read. */
  /* The pair is valid for this number of counts; 0 if there is no pair. */
  uint64_t span;
  uint64_t rate; /* Nanoseconds per count, shifted left by ST_RATE_SHIFT. */
  uint64_t ns;
  uint64_t last; /* The time that st_fast_now() returned last, in ns. */
};

extern _Thread_local struct st_clock_pair st_clock_pair;

/* Reads the kernel's clock, and starts a new span if the rate is known. */
uint64_t st_fast_clock_sync(void);

/* Computes the time from the pair of the calling thread.  Returns 0 if the pair
 * is not valid now: then st_fast_clock_sync() makes a new one. */
static inline uint64_t st_clock_pair_now(struct st_clock_pair* p) {
  uint64_t elapsed = st_counter() - p->base;
  if (__builtin_expect(elapsed >= p->span, 0))
    return 0;
  return p->last = p->ns + ((elapsed * p->rate) >> ST_RATE_SHIFT);
}

/* Returns the time of CLOCK_BOOTTIME in nanoseconds, computed from the
 * processor's counter where possible. */
static inline uint64_t st_fast_now(void) {
  uint64_t now = st_clock_pair_now(&st_clock_pair);
  return __builtin_expect(now != 0, 1) ? now : st_fast_clock_sync();
}

/* Returns whether the kernel's clock is based on the processor's counter, so
 * that the fast clock can be used. */
bool st_fast_clock_available(void);
