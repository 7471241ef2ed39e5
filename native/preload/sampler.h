/* The sampler of the preloaded library: samples the blocks that malloc gives out.
 *
 *   malloc --> may it be sampled? (a subtraction) --> the program's malloc
 *                     | yes
 *                     v
 *              call chain, heap profile, heap file     (native/probes)
 *   free   --> was it sampled? (a load)
 *
 * The environment starts it: STRETTO_NATIVE_HEAP=INTERVAL:FOLDER.  Its results
 * are in a file of that folder (probes/heap_file.h), which the first sample makes:
 * a program that allocates next to nothing leaves none.  After exec the program
 * makes it at its start, so that the reader knows that the memory of the old one
 * is gone.  Nothing has to be done at the end of the program.
 *
 * What it may not do: change errno or the result of a call, fail, wait for long,
 * or be called by itself.
 * - A thread that samples is marked: its own allocations, and those of a signal
 *   handler that interrupts it, are not sampled.  A sampled block that such a
 *   handler frees stays in the profile until its address is given out again.
 * - The child of a fork starts with an empty profile, at its first sample.  The
 *   child of a raw clone() is found by a page that the kernel wipes in it: it
 *   samples nothing.  A child of vfork is a part of its parent.
 * - Threads that end leave nothing behind.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "probes/heap_profile.h"
#include "probes/poisson.h"

extern _Atomic bool st_sampler_is_on;
extern struct st_heap_profile st_sampler_profile;
extern _Thread_local struct st_poisson st_sampler_poisson;

/* Whether an allocation has to be passed to st_sampler_add(). */
static inline bool st_sampler_wants(size_t size) {
  return atomic_load_explicit(&st_sampler_is_on, memory_order_relaxed) &&
         st_poisson_may_hit(&st_sampler_poisson, size);
}

/* Whether a block has to be passed to st_sampler_remove() before it is freed. */
static inline bool st_sampler_may_have(const void* block) {
  return st_heap_is_sampled(&st_sampler_profile, block);
}

/* Samples an allocation.  `frame` is the frame address of the called function. */
void st_sampler_add(const void* block, size_t size, const void* frame);
/* Removes a block.  Returns whether it was sampled. */
bool st_sampler_remove(const void* block, struct st_heap_block* removed);
/* Adds a block again that was not freed after all. */
void st_sampler_put_back(const struct st_heap_block* removed);
