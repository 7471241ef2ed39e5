/* The functions of malloc that a preloaded library puts before the program's.
 *
 *   program --malloc--> here --> the next library that has one: the C library,
 *                                or an allocator that the program brings along
 *
 * The next functions are found by dlsym() at the first call, which may come from
 * the loader, before any constructor.  dlsym() may allocate itself: it gets its
 * memory from a small arena, which is never freed.
 *
 * Nearly all calls end with a jump to the next function.  The others jump to a
 * slow one, whose frame address tells the sampler who called: so the functions
 * that jump must leave the caller's frame pointer as it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload/sampler.h"

#define EXPORT __attribute__((visibility("default")))
#define FRAME __builtin_frame_address(0)

#define SLOW __attribute__((noinline))

static void* first_malloc(size_t size);
static void* first_calloc(size_t count, size_t size);
static void* first_realloc(void* block, size_t size);
static void* first_memalign(size_t alignment, size_t size);
static void* first_aligned_alloc(size_t alignment, size_t size);
static void* first_valloc(size_t size);
static void* first_pvalloc(size_t size);
static int first_posix_memalign(void** block, size_t alignment, size_t size);
static void first_free(void* block);

static struct {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void (*free)(void*);
} next = {first_malloc,   first_calloc,         first_realloc,
          first_memalign, first_aligned_alloc,  first_valloc,
          first_pvalloc,  first_posix_memalign, first_free};

static struct {
  _Alignas(16) char bytes[8192];
  size_t used;
  bool is_open; /* While dlsym() runs. */
} arena;

static bool is_in_arena(const void* block) {
  return (uintptr_t)block - (uintptr_t)arena.bytes < sizeof arena.bytes;
}

static void* from_arena(size_t size) {
  size_t rounded = (size + 15) & ~(size_t)15;
  if (size > sizeof arena.bytes || rounded > sizeof arena.bytes - arena.used)
    return NULL;
  void* block = arena.bytes + arena.used;
  arena.used += rounded;
  return block;
}

/* Stores the next function, unless there is none. */
#define FIND(name)                                                   \
  do {                                                               \
    void* found = dlsym(RTLD_NEXT, #name);                           \
    if (found)                                                       \
      __atomic_store_n((void**)&next.name, found, __ATOMIC_RELAXED); \
  } while (0)

static void find_next(void) {
  arena.is_open = true;
  FIND(calloc);
  FIND(realloc);
  FIND(memalign);
  FIND(aligned_alloc);
  FIND(valloc);
  FIND(pvalloc);
  FIND(posix_memalign);
  FIND(free);
  FIND(malloc);
  arena.is_open = false;
}

/* --- until the next functions are found.  The arena is zero, and gives out no
 * byte twice. */

static void* first_malloc(size_t size) {
  if (arena.is_open)
    return from_arena(size);
  find_next();
  return next.malloc == first_malloc ? NULL : next.malloc(size);
}

static void* first_calloc(size_t count, size_t size) {
  size_t bytes;
  if (arena.is_open)
    return __builtin_mul_overflow(count, size, &bytes) ? NULL
                                                       : from_arena(bytes);
  find_next();
  return next.calloc == first_calloc ? NULL : next.calloc(count, size);
}

static SLOW void* move_from_arena(void* old, size_t size) {
  void* block = next.malloc(size);
  size_t most = sizeof arena.bytes - (size_t)((char*)old - arena.bytes);
  return block ? memmove(block, old, size < most ? size : most) : NULL;
}

static void* first_realloc(void* block, size_t size) {
  if (arena.is_open)
    return block ? move_from_arena(block, size) : from_arena(size);
  find_next();
  return next.realloc == first_realloc ? NULL : next.realloc(block, size);
}

static void first_free(void* block) {
  if (arena.is_open)
    return;
  find_next();
  if (next.free != first_free)
    next.free(block);
}

static int first_posix_memalign(void** block, size_t alignment, size_t size) {
  if (!arena.is_open)
    find_next();
  return next.posix_memalign == first_posix_memalign
             ? ENOMEM
             : next.posix_memalign(block, alignment, size);
}

#define FIRST(name, parameters, arguments)                         \
  static void* first_##name parameters {                           \
    if (!arena.is_open)                                            \
      find_next();                                                 \
    return next.name == first_##name ? NULL : next.name arguments; \
  }

FIRST(memalign, (size_t alignment, size_t size), (alignment, size))
FIRST(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
FIRST(valloc, (size_t size), (size))
FIRST(pvalloc, (size_t size), (size))

/* --- sampled calls */

/* Samples a new block of the caller of the function that this is in. */
#define ADD(block, size)                  \
  do {                                    \
    if (block)                            \
      st_sampler_add(block, size, FRAME); \
  } while (0)

static SLOW void* slow_malloc(size_t size) {
  void* block = next.malloc(size);
  ADD(block, size);
  return block;
}

static SLOW void* slow_calloc(size_t count, size_t size) {
  void* block = next.calloc(count, size);
  ADD(block, count * size);
  return block;
}

static SLOW void slow_free(void* block) {
  struct st_heap_block removed;
  if (is_in_arena(block))
    return;
  st_sampler_remove(block, &removed);
  next.free(block);
}

/* With a size of 0 the result may be NULL though the block was freed. */
static SLOW void* slow_realloc(void* old, size_t size, bool is_wanted) {
  if (old && is_in_arena(old))
    return move_from_arena(old, size);
  struct st_heap_block removed;
  bool was_sampled =
      old && st_sampler_may_have(old) && st_sampler_remove(old, &removed);
  void* block = next.realloc(old, size);
  if (!block && size && was_sampled)
    st_sampler_put_back(&removed);
  if (is_wanted)
    ADD(block, size);
  return block;
}

static SLOW int slow_posix_memalign(void** block, size_t alignment,
                                    size_t size) {
  int result = next.posix_memalign(block, alignment, size);
  if (!result)
    ADD(*block, size);
  return result;
}

/* --- the functions */

EXPORT void* malloc(size_t size) {
  return st_sampler_wants(size) ? slow_malloc(size) : next.malloc(size);
}

/* A product that overflows makes the next function return NULL. */
EXPORT void* calloc(size_t count, size_t size) {
  return st_sampler_wants(count * size) ? slow_calloc(count, size)
                                        : next.calloc(count, size);
}

EXPORT void free(void* block) {
  if (st_sampler_may_have(block) || is_in_arena(block))
    slow_free(block);
  else
    next.free(block);
}

static inline __attribute__((always_inline)) void* resize(void* old,
                                                          size_t size) {
  bool is_wanted = st_sampler_wants(size);
  return is_wanted || st_sampler_may_have(old) || is_in_arena(old)
             ? slow_realloc(old, size, is_wanted)
             : next.realloc(old, size);
}

EXPORT void* realloc(void* old, size_t size) {
  return resize(old, size);
}

EXPORT void* reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes))
    return resize(old, bytes);
  errno = ENOMEM;
  return NULL;
}

EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  return st_sampler_wants(size) ? slow_posix_memalign(block, alignment, size)
                                : next.posix_memalign(block, alignment, size);
}

#define NEW(name, parameters, arguments)                  \
  static SLOW void* slow_##name parameters {              \
    void* block = next.name arguments;                    \
    ADD(block, size);                                     \
    return block;                                         \
  }                                                       \
  EXPORT void* name parameters {                          \
    return st_sampler_wants(size) ? slow_##name arguments \
                                  : next.name arguments;  \
  }

NEW(memalign, (size_t alignment, size_t size), (alignment, size))
NEW(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
NEW(valloc, (size_t size), (size))
NEW(pvalloc, (size_t size), (size))
