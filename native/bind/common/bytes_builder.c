#include "bind/common/bytes_builder.h"

uint8_t* builder_room(struct bytes_builder* b, size_t n) {
  if (b->capacity - b->size < n) {
    size_t capacity = b->capacity ? 2 * b->capacity : 256;
    while (capacity - b->size < n)
      capacity *= 2;
    uint8_t* grown = PyMem_RawRealloc(b->data, capacity);
    if (!grown)
      return NULL;
    b->data = grown;
    b->capacity = capacity;
  }
  return b->data + b->size;
}

bool builder_append(struct bytes_builder* b, const void* data, size_t n) {
  uint8_t* p = builder_room(b, n);
  if (!p)
    return false;
  if (n)
    memcpy(p, data, n);
  b->size += n;
  return true;
}
