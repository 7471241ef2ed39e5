/* The trace clock.
 *
 * Perfetto's default trace clock on Linux is CLOCK_BOOTTIME: monotonic,
 * including suspended time, and the same for all processes and the kernel.  A
 * read goes through the vDSO and costs about 22 ns; it is the largest single
 * part of an event's cost, so an event reads it exactly once.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Clock ids of ClockSnapshot.Clock (clock_snapshot.proto). */
enum {
  ST_CLOCK_REALTIME = 1,
  ST_CLOCK_REALTIME_COARSE = 2,
  ST_CLOCK_MONOTONIC = 3,
  ST_CLOCK_MONOTONIC_COARSE = 4,
  ST_CLOCK_MONOTONIC_RAW = 5,
  ST_CLOCK_BOOTTIME = 6,
  ST_CLOCK_TSC = 9,
  /* The lowest id of a sequence-scoped clock: clock ids from 64 on have a
   * meaning only within one packet sequence. */
  ST_CLOCK_SEQUENCE_INCREMENTAL = 64,
};

/* Returns the time of CLOCK_BOOTTIME in nanoseconds. */
static inline uint64_t st_boottime_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
