/* The functions of malloc that a preloaded library puts before the program's.
 *
 *   program --malloc--> here --> the next library that has one: the C library,
 *                                or an allocator that the program brings along
 *
 * The next functions are found by dlsym() at the first call, which may come from
 * the loader, before any constructor.  dlsym() may allocate itself: it gets its
 * memory from a small arena, which is never freed.
 *
 * Every function has a frame pointer, because its frame address tells the sampler
 * who called.
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
} next;

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

static void find_next(void) {
  arena.is_open = true;
  *(void**)&next.calloc = dlsym(RTLD_NEXT, "calloc");
  *(void**)&next.realloc = dlsym(RTLD_NEXT, "realloc");
  *(void**)&next.memalign = dlsym(RTLD_NEXT, "memalign");
  *(void**)&next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
  *(void**)&next.valloc = dlsym(RTLD_NEXT, "valloc");
  *(void**)&next.pvalloc = dlsym(RTLD_NEXT, "pvalloc");
  *(void**)&next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  *(void**)&next.free = dlsym(RTLD_NEXT, "free");
  *(void**)&next.malloc = dlsym(RTLD_NEXT, "malloc");
  arena.is_open = false;
}

/* Whether a call has to be served from the arena. */
static inline bool is_early(void) {
  if (__builtin_expect(next.malloc != NULL, 1))
    return false;
  if (arena.is_open)
    return true;
  find_next();
  return false;
}

EXPORT void* malloc(size_t size) {
  if (is_early())
    return from_arena(size);
  void* block = next.malloc(size);
  if (st_sampler_wants(size) && block)
    st_sampler_add(block, size, FRAME);
  return block;
}

/* The arena is zero, and gives out no byte twice. */
EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes;
  bool is_too_large = __builtin_mul_overflow(count, size, &bytes);
  if (is_early())
    return is_too_large ? NULL : from_arena(bytes);
  void* block = next.calloc(count, size);
  if (!is_too_large && st_sampler_wants(bytes) && block)
    st_sampler_add(block, bytes, FRAME);
  return block;
}

EXPORT void free(void* block) {
  struct st_heap_block removed;
  if (!block || is_in_arena(block))
    return;
  if (st_sampler_may_have(block))
    st_sampler_remove(block, &removed);
  next.free(block);
}

static void* move_from_arena(void* old, size_t size) {
  void* block = malloc(size);
  size_t most = sizeof arena.bytes - (size_t)((char*)old - arena.bytes);
  return block ? memcpy(block, old, size < most ? size : most) : NULL;
}

/* With a size of 0 the result may be NULL though the block was freed. */
static inline __attribute__((always_inline)) void* resize(void* old,
                                                          size_t size,
                                                          const void* frame) {
  if (is_early())
    return from_arena(size);
  if (is_in_arena(old))
    return move_from_arena(old, size);
  struct st_heap_block removed;
  bool was_sampled =
      old && st_sampler_may_have(old) && st_sampler_remove(old, &removed);
  void* block = next.realloc(old, size);
  if (!block && size && was_sampled)
    st_sampler_put_back(&removed);
  if (st_sampler_wants(size) && block)
    st_sampler_add(block, size, frame);
  return block;
}

EXPORT void* realloc(void* old, size_t size) {
  return resize(old, size, FRAME);
}

EXPORT void* reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return resize(old, bytes, FRAME);
}

EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  is_early();
  int result = next.posix_memalign(block, alignment, size);
  if (st_sampler_wants(size) && !result)
    st_sampler_add(*block, size, FRAME);
  return result;
}

#define ALIGNED(name)                                \
  EXPORT void* name(size_t alignment, size_t size) { \
    is_early();                                      \
    void* block = next.name(alignment, size);        \
    if (st_sampler_wants(size) && block)             \
      st_sampler_add(block, size, FRAME);            \
    return block;                                    \
  }

#define OF_PAGES(name)                    \
  EXPORT void* name(size_t size) {        \
    is_early();                           \
    void* block = next.name(size);        \
    if (st_sampler_wants(size) && block)  \
      st_sampler_add(block, size, FRAME); \
    return block;                         \
  }

ALIGNED(memalign)
ALIGNED(aligned_alloc)
OF_PAGES(valloc)
OF_PAGES(pvalloc)
