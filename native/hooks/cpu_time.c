#include "hooks/cpu_time.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock) {
  struct timespec t;
  return clock_gettime(clock, &t) == 0
             ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec
             : 0;
}

uint64_t st_thread_cpu_ns(uint64_t native_id) {
  return read_clock((clockid_t)(~(uint32_t)native_id << 3 | 6));
}

uint64_t st_own_cpu_us(void) {
  return st_cpu_us(read_clock(CLOCK_THREAD_CPUTIME_ID));
}

uint64_t st_cpu_now(struct st_cpu_time* c, uint64_t native_id, uint64_t now,
                    uint64_t age_ns) {
  if (ST_UNLIKELY(now - c->read_at >= age_ns || st_hooks.cpu)) {
    c->cpu_ns = st_thread_cpu_ns(native_id);
    c->read_at = now;
  }
  return c->cpu_ns ? c->cpu_ns + (now - c->read_at) : 0;
}

uint64_t st_cpu_at(const struct st_cpu_time* c, uint64_t time, uint64_t least) {
  uint64_t at = c->cpu_ns + time - c->read_at;
  return !c->cpu_ns || (int64_t)(at - least) < 0 ? least : at;
}
