#include "wait_ring.h"

void st_wait_ring_add(struct st_wait_ring* r,
                      const struct st_ended_wait* wait) {
  uint64_t ns = wait->end - wait->begin;
  uint32_t added = r->added;
  if (ns < ST_MIN_RING_WAIT_NS) {
    r->short_waits++;
    r->short_ns += ns;
  } else if (added - r->taken == ST_RING_WAITS) {
    r->lost++;
  } else {
    r->waits[added % ST_RING_WAITS] = *wait;
    r->added = added + 1;
  }
}

bool st_wait_ring_take(struct st_wait_ring* r, struct st_ended_wait* wait) {
  if (!st_wait_ring_has_any(r))
    return false;
  *wait = r->waits[r->taken % ST_RING_WAITS];
  r->taken++;
  return true;
}

void st_wait_ring_clear(struct st_wait_ring* r) {
  r->taken = r->added;
  r->short_waits = r->short_ns = r->lost = 0;
}
