/* Address filter: tells of nearly every address, by one load, that it is not in
 * a set.
 *
 * A profiler has to look at every free, and nearly all freed blocks were not
 * sampled.  The filter has a counter for each 16 bytes of a window of memory;
 * addresses whose difference is a multiple of the window mostly share one, and
 * blocks that are near each other have counters in the same cache line:
 *
 *   address    |  upper bits  | place in the window | 4 bits |
 *                     \______ xor ______|
 *   counters   | 0 | 0 | 2 | 0 | 1 | ...    how many addresses of the set
 *
 * A counter that reaches 255 stays there, so the filter never misses an address
 * of the set.
 *
 * One thread at a time changes the filter; others may ask it meanwhile.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  ST_FILTER_BITS = 18,
  ST_FILTER_COUNTERS = 1 << ST_FILTER_BITS,
  ST_FILTER_STUCK = 255,
};

struct st_address_filter {
  _Atomic uint8_t counters[ST_FILTER_COUNTERS];
};

static inline uint32_t st_filter_place(uint64_t address) {
  uint64_t block = address >> 4;
  return (uint32_t)(block ^ (block >> ST_FILTER_BITS)) &
         (ST_FILTER_COUNTERS - 1);
}

/* Whether an address may be in the set. */
static inline bool st_filter_may_have(const struct st_address_filter* f,
                                      uint64_t address) {
  return atomic_load_explicit(&f->counters[st_filter_place(address)],
                              memory_order_relaxed) != 0;
}

static inline void st_filter_change(struct st_address_filter* f,
                                    uint64_t address, int by) {
  _Atomic uint8_t* counter = &f->counters[st_filter_place(address)];
  uint8_t count = atomic_load_explicit(counter, memory_order_relaxed);
  if (count != ST_FILTER_STUCK)
    atomic_store_explicit(counter, (uint8_t)(count + by), memory_order_relaxed);
}

static inline void st_filter_add(struct st_address_filter* f,
                                 uint64_t address) {
  st_filter_change(f, address, 1);
}

/* Removes an address, which is in the set. */
static inline void st_filter_remove(struct st_address_filter* f,
                                    uint64_t address) {
  st_filter_change(f, address, -1);
}
