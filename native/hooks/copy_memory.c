#include "hooks/copy_memory.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "probes/mapped_array.h"

enum { ALIGNMENT = 16, PAGES = 1 << 20 };

/* Before each block is its size, in ALIGNMENT bytes. */
static struct { uint8_t *next, *end, *last; } memory;

static void* allocate(void* Py_UNUSED(self), size_t size) {
  if (size > PY_SSIZE_T_MAX - PAGES)
    return NULL;
  size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
  if ((size_t)(memory.end - memory.next) < size) {
    size_t pages = size < PAGES ? PAGES : size;
    memory.next = st_mapped_new(pages);
    memory.end = memory.next ? memory.next + pages : NULL;
    if (!memory.next)
      return NULL;
  }
  memory.last = memory.next + ALIGNMENT;
  memcpy(memory.next, &size, sizeof size);
  memory.next += size;
  return memory.last;
}

static void* allocate_zeroed(void* self, size_t count, size_t size) {
  if (size && count > PY_SSIZE_T_MAX / size)
    return NULL;
  void* block = allocate(self, count * size);
  return block ? memset(block, 0, count * size) : NULL;
}

static void release(void* Py_UNUSED(self), void* block) {
  if (!block || block != memory.last)
    return;
  memory.next = memory.last - ALIGNMENT;
  memory.last = NULL;
}

/* A block of the program has no size here: it cannot grow. */
static void* reallocate(void* self, void* block, size_t size) {
  if (!block)
    return allocate(self, size);
  if (block != memory.last)
    return NULL;
  size_t before;
  memcpy(&before, memory.last - ALIGNMENT, sizeof before);
  before -= ALIGNMENT;
  void* grown = allocate(self, size);
  return grown ? memcpy(grown, block, before < size ? before : size) : NULL;
}

void st_copy_memory_install(void) {
  PyMemAllocatorEx a = {NULL, allocate, allocate_zeroed, reallocate, release};
  PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &a);
  PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &a);
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &a);
}
