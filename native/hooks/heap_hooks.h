/* Heap hooks: samples the memory that Python's allocators give out.
 *
 * The three domains of CPython each have a hook around the allocator that was
 * there before:
 *
 *   PyObject_Malloc --> our hook --> pymalloc --(more than 512 bytes)--> ...
 *                          |                                              |
 *                  sampled: profile         PyMem_RawMalloc --> our hook, which
 *                                           lets it pass: it is counted already
 *
 * A block that is not sampled costs a subtraction when it is allocated, and a
 * load when it is freed (probes/poisson.h, probes/address_filter.h).
 *
 * The hooks never allocate from the domains, never run Python code, and need no
 * GIL: `raw` is called without it.  The mutex is taken for sampled blocks only.
 *
 * Life cycle.  st_heap_hooks_start() puts the hooks in place, and
 * st_heap_hooks_stop() removes them.  If another tool has wrapped ours
 * meanwhile, they stay and only pass calls on.  Blocks from before the start are
 * unknown: their frees are ignored.  In the child of a fork the profile is the
 * parent's until st_heap_hooks_stop().
 *
 * Threads: start, stop and the reading functions are called with the GIL of the
 * main interpreter, by one thread at a time.
 */
#pragma once

#include "hooks/heap_stacks.h"
#include "probes/heap_profile.h"

struct st_heap_options {
  uint64_t interval;     /* The sampling interval in bytes, at least 1. */
  uint64_t max_interval; /* Up to which the interval is doubled. */
  uint32_t limit;        /* CPU share in thousandths; 0 for no limit. */
  uint64_t seed;         /* Of the random numbers. */
};

/* The totals of a heap, and of each of its stacks that has changed. */
struct st_heap_dump {
  uint64_t live, max;
  struct st_heap_row {
    uint32_t stack;
    struct st_heap_sum allocated, freed, at_max;
  } * rows; /* To be freed. */
  size_t count;
};

struct st_heap_stats {
  struct st_heap_drops drops;
  uint64_t live; /* The number of live samples. */
  uint64_t stacks, other_stacks;
  uint64_t interval;
  uint32_t slower; /* How often the interval was doubled. */
};

/* Returns false with an exception set if it runs already, or on failure. */
bool st_heap_hooks_start(const struct st_heap_options* options);
void st_heap_hooks_stop(void);
bool st_heap_hooks_running(void);

/* Copies what has changed since the last dump of the heap; all, if
 * `everything`.  Returns false when out of memory. */
bool st_heap_hooks_dump(uint32_t heap, bool everything,
                        struct st_heap_dump* dump);
/* Returns the totals of functions, over all heaps, by number - 1: of the stacks
 * whose innermost call is theirs.  To be freed; NULL when out of memory. */
struct st_heap_function_total {
  uint64_t allocated, live; /* Bytes. */
} * st_heap_hooks_functions(size_t* count);
struct st_heap_stats st_heap_hooks_stats(void);

/* Sets whether allocations of the calling thread are left out: those of the
 * profiler itself.  Returns the value before. */
bool st_heap_hooks_leave_out(bool leave_out);

/* Copies the frames of a stack, the outermost first.  Returns their number. */
uint32_t st_heap_hooks_stack(uint32_t number,
                             uint32_t frames[ST_HEAP_MAX_DEPTH]);
/* Returns a frame; its function is 0 if there is no such frame. */
struct st_table_frame st_heap_hooks_frame(uint32_t number);
/* Returns a function with borrowed references; the names are NULL if there is
 * no such function. */
struct st_heap_function st_heap_hooks_function(uint32_t number);
