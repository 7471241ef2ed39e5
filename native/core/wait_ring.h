/* Wait ring: waits that have ended, until another thread writes them.
 *
 *   waits   | w | w | w | ... |        ST_RING_WAITS, used in a circle
 *             ^ taken       ^ added
 *
 * A thread that waits for the interpreter can write no event.  It adds its wait
 * here, without a lock and without memory; a thread that has the interpreter takes
 * the waits, and writes them.  Neither waits for the other.
 *
 * Threads: one adds at a time, as the caller has a mutex (that of the condition for
 * which it has waited); one takes at a time.
 *
 * Limits: a wait of less than ST_MIN_RING_WAIT_NS is only counted.  A full ring
 * drops waits, and counts them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ST_MIN_RING_WAIT_NS = 20000, ST_RING_WAITS = 8192 };

struct st_ended_wait {
  uint64_t begin, end; /* In ns. */
  uint64_t holder;     /* What it has waited for; the ring only keeps it. */
  uint64_t thread;     /* The kernel's id of the thread that has waited. */
};

struct st_wait_ring {
  struct st_ended_wait waits[ST_RING_WAITS];
  _Atomic uint32_t added, taken;
  _Atomic uint64_t short_waits, short_ns, lost;
};

void st_wait_ring_add(struct st_wait_ring* r, const struct st_ended_wait* wait);
/* Takes the oldest wait.  Returns false if there is none. */
bool st_wait_ring_take(struct st_wait_ring* r, struct st_ended_wait* wait);
/* Drops all waits and counts.  No other thread may use the ring meanwhile. */
void st_wait_ring_clear(struct st_wait_ring* r);

static inline bool st_wait_ring_has_any(const struct st_wait_ring* r) {
  return r->taken != r->added;
}
