/* CPU time: how long a thread has run, from few readings of its clock.
 *
 * A reading costs about 460 ns, twenty times as much as a reading of the time.
 * So a thread's clock is read at most once a millisecond when calls begin, and
 * once per 50 us when calls of at least ST_TIMED_CALL_NS end.  Between readings
 * the thread is assumed to run.  So an estimate is wrong by less than the time
 * since the reading.  The end of a call that became known late, because it was
 * switched off, has at most the thread's present CPU time: it may have waited for
 * long.  With the option `cpu` the clock is read at each begin and end.
 */
#pragma once

#include "hooks/tracer.h"

enum {
  /* Calls that last at least this long have a CPU time. */
  ST_TIMED_CALL_NS = 1000000,
  ST_CPU_AGE_AT_BEGIN_NS = 1000000,
  ST_CPU_AGE_AT_END_NS = 50000,
};

/* A reading of a thread's CPU time. */
struct st_cpu_time {
  uint64_t read_at;
  uint64_t cpu_ns; /* 0 if the time is unknown. */
};

/* Returns a CPU time in microseconds, rounded up: 0 stands for an unknown
 * time. */
static inline uint64_t st_cpu_us(uint64_t ns) {
  return (ns + 999) / 1000;
}

/* Returns the CPU time of the calling thread, in microseconds. */
uint64_t st_own_cpu_us(void);
/* Returns the CPU time of a thread of this process; 0 if it has ended. */
uint64_t st_thread_cpu_ns(uint64_t native_id);
/* Returns the CPU time of a thread at the present time `now`.  Reads the
 * thread's clock if the last reading is older than `age_ns`. */
uint64_t st_cpu_now(struct st_cpu_time* c, uint64_t native_id, uint64_t now,
                    uint64_t age_ns);
/* Returns the thread's CPU time at `time`, estimated from the last reading, but
 * at least `least`. */
uint64_t st_cpu_at(const struct st_cpu_time* c, uint64_t time, uint64_t least);
