/* A growing byte buffer, allocated by Python's raw allocator.
 *
 * Life cycle: a zeroed struct is an empty builder; PyMem_RawFree(b->data) frees
 * it.  A pointer into the buffer is valid until the next call that may grow it.
 * One thread uses a builder at a time; no function needs the GIL or runs
 * Python.
 */
#pragma once

#include "bind/common/python.h"

struct bytes_builder {
  uint8_t* data;
  size_t size, capacity;
};

/* Makes room for n more bytes at the end, and returns a pointer to that room.
 * The builder's size does not change.  Returns NULL when out of memory. */
uint8_t* builder_room(struct bytes_builder* b, size_t n);

/* Appends the bytes before `end`, which were written to builder_room(). */
static inline void builder_set_end(struct bytes_builder* b,
                                   const uint8_t* end) {
  b->size = (size_t)(end - b->data);
}

/* Appends bytes to the builder.  Returns false, with nothing appended, when out
 * of memory. */
bool builder_append(struct bytes_builder* b, const void* data, size_t n);
