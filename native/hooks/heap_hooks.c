#include "hooks/heap_hooks.h"

#include <stdlib.h>

#include "core/fork_guard.h"
#include "probes/heap_pace.h"
#include "probes/poisson.h"

/* pymalloc gives requests above this to the domain `raw`. */
enum { MAX_SMALL = 512 };

static struct {
  struct st_heap_profile profile;
  struct st_heap_stacks stacks;
  struct st_heap_pace pace;
  struct st_heap_options options;
  _Atomic bool running;
  _Atomic uint64_t seeds;
  _Atomic uint32_t profiles; /* The number of profiles so far. */
  PyMemAllocatorEx originals[ST_HEAPS];
  bool in_place[ST_HEAPS];
} heap = {.profile.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Not a member of `heap`: its address would keep the filter, a quarter of a MiB
 * of zeros, in the file. */
static struct st_fork_entry at_fork = {.mutexes = {&heap.profile.mutex}};

static _Thread_local struct {
  struct st_poisson poisson;
  /* The thread is in an allocator of `mem` or `obj`. */
  bool inside;
  /* The thread's allocations are left out. */
  bool left_out;
  /* The number of the profile for which the random numbers are seeded. */
  uint32_t profile;
} thread;

static void lock(void) {
  pthread_mutex_lock(&heap.profile.mutex);
}

static void unlock(void) {
  pthread_mutex_unlock(&heap.profile.mutex);
}

/* Returns the seed of this thread in a new profile; else it is not used. */
static uint64_t new_seed(void) {
  if (thread.profile == heap.profiles)
    return 0;
  thread.profile = heap.profiles;
  thread.poisson.random = 0;
  return heap.options.seed + atomic_fetch_add(&heap.seeds, 1);
}

/* The slow path of an allocation. */
__attribute__((noinline)) static void sample(uint32_t domain, void* block,
                                             size_t size) {
  if (!heap.running) {
    st_poisson_reset(&thread.poisson);
    return;
  }
  uint64_t weight =
      st_poisson_weight(&thread.poisson, size, heap.pace.interval, new_seed());
  if (!weight || thread.left_out)
    return;
  lock();
  uint64_t began = st_heap_pace_begin(&heap.pace);
  if (heap.running) {
    uint32_t stack = st_heap_stack_number(&heap.stacks, &heap.profile.filter);
    st_heap_add(&heap.profile, domain, stack, (uint64_t)(uintptr_t)block,
                weight);
  }
  st_heap_pace_end(&heap.pace, began);
  unlock();
}

/* Removes a block that is about to be freed.  Returns whether it was
 * sampled. */
__attribute__((noinline)) static bool forget(void* block,
                                             struct st_heap_block* removed) {
  uint64_t address = (uint64_t)(uintptr_t)block;
  lock();
  st_heap_stacks_free_code(&heap.stacks, &heap.profile.filter, address);
  bool sampled = st_heap_remove(&heap.profile, address, removed);
  unlock();
  return sampled;
}

static void put_back(const struct st_heap_block* removed) {
  lock();
  if (heap.running)
    st_heap_put_back(&heap.profile, removed);
  unlock();
}

static inline bool may_be_sampled(void* block) {
  return st_heap_is_sampled(&heap.profile, block);
}

/* Whether a call of `raw` comes from the allocator of another domain. */
static inline bool is_nested(uint32_t domain) {
  return domain == PYMEM_DOMAIN_RAW && thread.inside;
}

/* Whether an allocation needs the slow path: it may be sampled, or is so large
 * that the allocator may take it from `raw`. */
static inline bool may_hit(size_t size) {
  return st_poisson_may_hit(&thread.poisson, size);
}

_Static_assert((int)ST_POISSON_LARGE <= (int)MAX_SMALL + 1,
               "allocations that `raw` may serve take the slow path");

__attribute__((noinline)) static void* slow_malloc(uint32_t domain, void* ctx,
                                                   size_t size) {
  bool before = thread.inside;
  thread.inside = true;
  void* block = heap.originals[domain].malloc(ctx, size);
  thread.inside = before;
  if (block)
    sample(domain, block, size);
  return block;
}

__attribute__((noinline)) static void* slow_calloc(uint32_t domain, void* ctx,
                                                   size_t count, size_t size) {
  bool before = thread.inside;
  thread.inside = true;
  void* block = heap.originals[domain].calloc(ctx, count, size);
  thread.inside = before;
  if (block)
    sample(domain, block, count * size);
  return block;
}

__attribute__((noinline)) static void slow_free(uint32_t domain, void* ctx,
                                                void* block) {
  struct st_heap_block removed;
  forget(block, &removed);
  heap.originals[domain].free(ctx, block);
}

/* The hooks of all domains; the compiler makes one of each for each domain.
 * Nearly all calls end with a jump to the original allocator. */
#define INLINE static inline __attribute__((always_inline))

INLINE void* hooked_malloc(uint32_t domain, void* ctx, size_t size) {
  if (!is_nested(domain) && may_hit(size))
    return slow_malloc(domain, ctx, size);
  return heap.originals[domain].malloc(ctx, size);
}

/* A product that overflows makes the original allocator return NULL. */
INLINE void* hooked_calloc(uint32_t domain, void* ctx, size_t count,
                           size_t size) {
  if (!is_nested(domain) && may_hit(count * size))
    return slow_calloc(domain, ctx, count, size);
  return heap.originals[domain].calloc(ctx, count, size);
}

INLINE void* hooked_realloc(uint32_t domain, void* ctx, void* old,
                            size_t size) {
  PyMemAllocatorEx* original = &heap.originals[domain];
  if (is_nested(domain))
    return original->realloc(ctx, old, size);
  struct st_heap_block removed;
  bool sampled = may_be_sampled(old) && forget(old, &removed);
  bool before = thread.inside;
  thread.inside = true;
  void* block = original->realloc(ctx, old, size);
  thread.inside = before;
  if (!block && sampled)
    put_back(&removed);
  if (block && may_hit(size))
    sample(domain, block, size);
  return block;
}

INLINE void hooked_free(uint32_t domain, void* ctx, void* block) {
  if (may_be_sampled(block))
    slow_free(domain, ctx, block);
  else
    heap.originals[domain].free(ctx, block);
}

#define HOOKS(name, domain)                                          \
  static void* name##_malloc(void* ctx, size_t size) {               \
    return hooked_malloc(domain, ctx, size);                         \
  }                                                                  \
  static void* name##_calloc(void* ctx, size_t count, size_t size) { \
    return hooked_calloc(domain, ctx, count, size);                  \
  }                                                                  \
  static void* name##_realloc(void* ctx, void* block, size_t size) { \
    return hooked_realloc(domain, ctx, block, size);                 \
  }                                                                  \
  static void name##_free(void* ctx, void* block) {                  \
    hooked_free(domain, ctx, block);                                 \
  }

HOOKS(raw, PYMEM_DOMAIN_RAW)
HOOKS(mem, PYMEM_DOMAIN_MEM)
HOOKS(obj, PYMEM_DOMAIN_OBJ)

/* The context is that of the original allocator, which the hooks pass on.  So
 * a thread that reads the old function and the new context, or the other way
 * round, calls correctly, too: `raw` needs no GIL, and the change is not
 * atomic. */
static const PyMemAllocatorEx kHooks[ST_HEAPS] = {
    [PYMEM_DOMAIN_RAW] = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
    [PYMEM_DOMAIN_MEM] = {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
    [PYMEM_DOMAIN_OBJ] = {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free},
};

static void put_in_place(PyMemAllocatorDomain domain) {
  if (heap.in_place[domain])
    return;
  PyMem_GetAllocator(domain, &heap.originals[domain]);
  PyMemAllocatorEx hooks = kHooks[domain];
  hooks.ctx = heap.originals[domain].ctx;
  PyMem_SetAllocator(domain, &hooks);
  heap.in_place[domain] = true;
}

/* Puts the original allocator back, unless another tool has wrapped ours. */
static void remove_hooks(PyMemAllocatorDomain domain) {
  PyMemAllocatorEx current;
  PyMem_GetAllocator(domain, &current);
  if (current.malloc != kHooks[domain].malloc)
    return;
  PyMem_SetAllocator(domain, &heap.originals[domain]);
  heap.in_place[domain] = false;
}

static void register_for_forks(void) {
  static bool registered;
  if (!registered)
    st_fork_register(&at_fork);
  registered = true;
}

bool st_heap_hooks_start(const struct st_heap_options* options) {
  if (heap.running) {
    PyErr_SetString(PyExc_RuntimeError, "a heap profile runs already");
    return false;
  }
  register_for_forks();
  if (!st_heap_stacks_init(&heap.stacks)) {
    st_heap_hooks_stop();
    return false;
  }
  st_heap_profile_init(&heap.profile);
  heap.options = *options;
  st_heap_pace_start(&heap.pace, options->interval, options->max_interval,
                     options->limit);
  heap.seeds = 0;
  heap.profiles++;
  heap.running = true;
  for (int domain = 0; domain < ST_HEAPS; domain++)
    put_in_place((PyMemAllocatorDomain)domain);
  return true;
}

void st_heap_hooks_stop(void) {
  for (int domain = 0; domain < ST_HEAPS; domain++)
    if (heap.in_place[domain])
      remove_hooks((PyMemAllocatorDomain)domain);
  lock();
  heap.running = false;
  struct st_heap_function* functions = heap.stacks.functions;
  uint32_t count = heap.stacks.function_count;
  st_heap_stacks_clear(&heap.stacks);
  st_heap_profile_clear(&heap.profile);
  unlock();
  st_heap_functions_free(functions, count);
}

bool st_heap_hooks_running(void) {
  return heap.running;
}

/* Returns the capacity that a dump needs: the number of stacks at most. */
static size_t stacks_of(uint32_t number) {
  lock();
  size_t count = heap.profile.heaps[number].capacity;
  unlock();
  return count;
}

static void copy_rows(struct st_heap* from, struct st_heap_dump* dump,
                      size_t room) {
  uint32_t i = 1;
  while (dump->count < room && (i = st_heap_next_changed(from, i))) {
    const struct st_heap_stack* s = &from->stacks[i];
    dump->rows[dump->count++] = (struct st_heap_row){
        i++, s->allocated, s->freed, st_heap_at_max(from, s)};
  }
}

bool st_heap_hooks_dump(uint32_t number, bool everything,
                        struct st_heap_dump* dump) {
  size_t room = stacks_of(number);
  *dump = (struct st_heap_dump){.rows = calloc(room + 1, sizeof *dump->rows)};
  if (!dump->rows)
    return false;
  struct st_heap* from = &heap.profile.heaps[number];
  lock();
  if (everything)
    st_heap_dump_all(from);
  copy_rows(from, dump, room);
  dump->live = from->live;
  dump->max = from->max;
  unlock();
  return true;
}

/* Returns the number of the function that a stack's innermost call is of. */
static uint64_t innermost(uint32_t stack) {
  uint32_t depth;
  const uint32_t* frames =
      st_stack_table_frames(heap.stacks.table, stack, &depth);
  return st_stack_table_frame(heap.stacks.table, frames[depth - 1]).function;
}

static void add_functions(const struct st_heap* from,
                          struct st_heap_function_total* totals, size_t room) {
  for (uint32_t i = 1; i < from->capacity; i++) {
    const struct st_heap_stack* s = &from->stacks[i];
    uint64_t function = s->changed ? innermost(i) : 0;
    if (!function || function > room)
      continue;
    totals[function - 1].allocated += s->allocated.bytes;
    totals[function - 1].live += s->allocated.bytes - s->freed.bytes;
  }
}

struct st_heap_function_total* st_heap_hooks_functions(size_t* count) {
  lock();
  *count = heap.running ? heap.stacks.function_count : 0;
  unlock();
  struct st_heap_function_total* totals = calloc(*count + 1, sizeof *totals);
  lock();
  for (int i = 0; totals && heap.running && i < ST_HEAPS; i++)
    add_functions(&heap.profile.heaps[i], totals, *count);
  unlock();
  return totals;
}

bool st_heap_hooks_leave_out(bool leave_out) {
  bool before = thread.left_out;
  thread.left_out = leave_out;
  return before;
}

struct st_heap_stats st_heap_hooks_stats(void) {
  lock();
  struct st_heap_stats stats = {
      .drops = heap.profile.drops,
      .live = heap.profile.live.count,
      .stacks =
          heap.running ? st_stack_table_stack_count(heap.stacks.table) : 0,
      .other_stacks = heap.stacks.rest,
      .interval = heap.pace.interval,
      .slower = heap.pace.slower,
  };
  unlock();
  return stats;
}

uint32_t st_heap_hooks_stack(uint32_t number,
                             uint32_t frames[ST_HEAP_MAX_DEPTH]) {
  uint32_t depth = 0;
  lock();
  if (heap.running && number &&
      number <= st_stack_table_stack_count(heap.stacks.table)) {
    const uint32_t* all =
        st_stack_table_frames(heap.stacks.table, number, &depth);
    memcpy(frames, all, depth * sizeof *frames);
  }
  unlock();
  return depth;
}

struct st_table_frame st_heap_hooks_frame(uint32_t number) {
  struct st_table_frame frame = {0};
  lock();
  if (heap.running && number &&
      number <= st_stack_table_frame_count(heap.stacks.table))
    frame = st_stack_table_frame(heap.stacks.table, number);
  unlock();
  return frame;
}

struct st_heap_function st_heap_hooks_function(uint32_t number) {
  struct st_heap_function function = {0};
  lock();
  if (number && number <= heap.stacks.function_count)
    function = heap.stacks.functions[number - 1];
  unlock();
  return function;
}
