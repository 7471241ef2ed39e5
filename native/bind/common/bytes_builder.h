/* A byte buffer that grows, from Python's raw allocator.
 *
 * Life cycle: all zero is an empty builder; PyMem_RawFree(b->data) ends it.  A
 * pointer into the buffer is valid until the next call that may grow it.  One
 * thread uses a builder at a time; no function needs the GIL or runs Python.
 */
#pragma once

#include "bind/common/python.h"

struct bytes_builder {
  uint8_t* data;
  size_t size, capacity;
};

/* Room for n more bytes behind the end; the size stays.  NULL: no memory. */
uint8_t* builder_room(struct bytes_builder* b, size_t n);

/* False: no memory, and nothing was appended. */
bool builder_append(struct bytes_builder* b, const void* data, size_t n);
