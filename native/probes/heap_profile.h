/* Heap profile: the totals of sampled allocations, by heap and stack.
 *
 *   sampled allocation --> live: address -> (weight, heap, stack)
 *                          totals[heap][stack] += weight
 *   free of an address --> filter says no: nothing                  (a few ns)
 *                          live has it: totals[heap][stack].freed += weight
 *
 * A weight is the number of bytes that a sample stands for (poisson.h).  Totals
 * are since the start.  A dump reads those that have changed since the last
 * dump of their heap.
 *
 * The maximum.  When the live bytes of a heap reach a new maximum, each stack's
 * live bytes of that moment are wanted.  Copying all totals at each new maximum
 * would take too long, so a stack keeps its own when it changes for the first
 * time afterwards: each change has a number, and the heap keeps that of its
 * maximum.
 *
 * Limits: ST_HEAP_MAX_LIVE live samples, and the stacks' numbers.  A sample that
 * finds no room is not counted at all, because its free would be missed, too;
 * it is counted as dropped.
 *
 * Threads: st_heap_is_sampled() may be called by any thread without the mutex;
 * everything else needs it.  A block must be removed before it is freed: after
 * that another thread may get its address.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/address_filter.h"
#include "probes/address_table.h"

enum {
  ST_HEAP_MAX_LIVE = 1 << 19,
  ST_HEAPS = 3,
  ST_HEAP_MAX_STACK = (1 << 20) - 1,
};

/* Bytes and samples. */
struct st_heap_sum {
  uint64_t bytes, samples;
};

/* The totals of one stack in one heap. */
struct st_heap_stack {
  struct st_heap_sum allocated, freed;
  /* What was live at the last maximum of the heap, if the stack has changed
   * since; st_heap_at_max() returns it in any case. */
  struct st_heap_sum at_max;
  uint64_t changed;     /* The number of the last change. */
  bool is_new_to_dumps; /* Whether it has changed since the last dump. */
};

struct st_heap {
  struct st_heap_stack* stacks; /* By the number of the stack. */
  uint32_t capacity;
  uint64_t live, max;  /* Bytes. */
  uint64_t max_change; /* The number of the change that reached `max`. */
};

/* Why samples were not counted. */
struct st_heap_drops {
  uint64_t live_full; /* ST_HEAP_MAX_LIVE was reached. */
  uint64_t out_of_memory;
};

struct st_heap_profile {
  pthread_mutex_t mutex;
  struct st_address_filter filter;
  struct st_address_table live;
  struct st_heap heaps[ST_HEAPS];
  struct st_heap_drops drops;
  uint64_t changes; /* The number of changes so far. */
};

/* A sample that was removed, which st_heap_put_back() adds again. */
struct st_heap_block {
  uint64_t address, value;
};

/* Starts with no sample.  `p` is zero, or was cleared. */
void st_heap_profile_init(struct st_heap_profile* p);
/* Forgets everything, and frees the memory.  The mutex stays valid. */
void st_heap_profile_clear(struct st_heap_profile* p);

static inline bool st_heap_is_sampled(const struct st_heap_profile* p,
                                      const void* address) {
  return st_filter_may_have(&p->filter, (uint64_t)(uintptr_t)address);
}

/* Counts a sampled allocation.  `stack` is from 1 to ST_HEAP_MAX_STACK.  An
 * address that is live already was freed without notice: it is removed.
 * Returns false if the sample was dropped. */
bool st_heap_add(struct st_heap_profile* p, uint32_t heap, uint32_t stack,
                 uint64_t address, uint64_t weight);
/* Counts the free of an address.  Returns false if it was not sampled. */
bool st_heap_remove(struct st_heap_profile* p, uint64_t address,
                    struct st_heap_block* block);
/* Undoes st_heap_remove(), for a block that was not freed after all. */
void st_heap_put_back(struct st_heap_profile* p,
                      const struct st_heap_block* block);

/* Returns what of a stack was live at the last maximum of the heap. */
struct st_heap_sum st_heap_at_max(const struct st_heap* heap,
                                  const struct st_heap_stack* stack);
/* Returns the number of the next stack that has changed since the last dump,
 * from the number `from` on, and marks it as unchanged; 0 if there is none. */
uint32_t st_heap_next_changed(struct st_heap* heap, uint32_t from);
/* Marks all stacks that were ever sampled as changed. */
void st_heap_dump_all(struct st_heap* heap);
