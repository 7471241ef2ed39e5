/* Heap profiles: the allocations and frees of each stack, from heapprofd's
 * packets.
 *
 * A profile consists of several packets, of which all but the last one have
 * `continued` set.  Its samples are the sums since the start; the rows are the
 * differences between two profiles:
 *
 *   sums of a stack     count 3, size 300     count 5, size 400
 *   rows                      3,      300           2,      100
 *
 * A stack of the profiler may become another callsite in a later profile, for
 * example when a mapping changes.  The sums of the former callsite are then
 * corrected: the new one begins with what it already had.
 */
#pragma once

#include "keys.h"
#include "string_pool.h"

struct st_heap_sums {
  uint64_t count, size;
};

struct st_heap_totals {
  struct st_heap_sums allocated, freed;
};

struct st_heap_sample {
  int64_t ts;
  uint64_t pid, stack;
  st_string heap;
  struct st_heap_totals totals;
};

/* The state of a profiler's sequence, until its state is cleared. */
struct st_heap_profiler {
  bool has_index;
  uint64_t index;
  uint32_t profiles; /* The number of complete profiles. */
  ST_ARRAY(struct st_heap_sample) pending;
};

struct st_heap_profiles {
  struct st_map by_interning; /* Number of a profiler + 1. */
  ST_ARRAY(struct st_heap_profiler) profilers;
  /* Strings, mappings, frames and stacks of a profile's packets: row + 1. */
  struct st_keys own_keys;
  ST_ARRAY(uint32_t) own;
  /* By profiler, process and callsite. */
  struct st_keys total_keys;
  ST_ARRAY(struct st_heap_totals) totals;
  /* By profiler and the profiler's id of a stack. */
  struct st_keys stack_keys;
  ST_ARRAY(struct st_heap_totals) corrections;
  /* Combinations of process, heap, stack and callsite. */
  struct st_keys seen;
};

void st_heap_profiles_free(struct st_heap_profiles* h);
