#include "hooks/look_times.h"

#include <stdatomic.h>

static struct {
  struct {
    _Atomic uint64_t begin, end;
  } last[ST_KEPT_LOOKS];
  _Atomic uint64_t count;
} looks;

void st_look_times_add(uint64_t begin, uint64_t end) {
  uint64_t number = atomic_load_explicit(&looks.count, memory_order_relaxed);
  uint64_t at = number % ST_KEPT_LOOKS;
  atomic_store_explicit(&looks.last[at].begin, begin, memory_order_relaxed);
  atomic_store_explicit(&looks.last[at].end, end, memory_order_relaxed);
  atomic_store_explicit(&looks.count, number + 1, memory_order_release);
}

int st_look_times(struct st_look_time* out) {
  uint64_t end = atomic_load_explicit(&looks.count, memory_order_acquire);
  int count = 0;
  /* The oldest look is left out: the sampling thread may be replacing it. */
  for (uint64_t i = end < ST_KEPT_LOOKS ? 0 : end - ST_KEPT_LOOKS + 1; i < end;
       i++) {
    uint64_t at = i % ST_KEPT_LOOKS;
    out[count++] = (struct st_look_time){
        atomic_load_explicit(&looks.last[at].begin, memory_order_relaxed),
        atomic_load_explicit(&looks.last[at].end, memory_order_relaxed)};
  }
  return count;
}
