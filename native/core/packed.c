#include "packed.h"

#include <stdlib.h>

static bool is_on_heap(const struct st_packed* p) {
  return p->begin != p->inline_bytes;
}

bool st_packed_grow(struct st_packed* p, size_t n) {
  size_t size = st_packed_size(p);
  if (n > ST_MAX_MESSAGE_SIZE - size)
    return false;
  size_t capacity = 2 * (size + n);
  uint8_t* grown = realloc(is_on_heap(p) ? p->begin : NULL, capacity);
  if (!grown)
    return false;
  if (!is_on_heap(p))
    memcpy(grown, p->inline_bytes, size);
  p->begin = grown;
  p->cur = grown + size;
  p->end = grown + capacity;
  return true;
}

void st_packed_free(struct st_packed* p) {
  if (is_on_heap(p))
    free(p->begin);
  st_packed_init(p);
}
