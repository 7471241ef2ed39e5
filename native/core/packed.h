/* Packed fields: the elements of one repeated field, without tags, collected
 * before their total length is written.
 *
 *   tag | length | element | element | ...
 *
 * Elements are collected in an array inside the struct, which the caller keeps
 * on its stack.  Above 8,160 bytes they are moved to the heap.
 *
 *   struct st_packed packed;
 *   st_packed_init(&packed);
 *   st_packed_add_varint(&packed, 150);
 *   st_message_append_packed(&message, 4, &packed);
 *   st_packed_free(&packed);
 *
 * A field without elements is written with length 0, so that readers see that
 * it is present.
 *
 * Limits: ST_MAX_MESSAGE_SIZE bytes.  An add that is out of memory or would
 * exceed the limit returns false and changes nothing.
 */
#pragma once

#include "message.h"

enum { ST_PACKED_INLINE = 8192 - 32 };

struct st_packed {
  uint8_t* cur;
  uint8_t* end;
  /* The array of encoded elements: inline_bytes, or an array on the heap. */
  uint8_t* begin;
  uint8_t inline_bytes[ST_PACKED_INLINE];
};

static inline void st_packed_init(struct st_packed* p) {
  p->begin = p->cur = p->inline_bytes;
  p->end = p->begin + sizeof p->inline_bytes;
}

static inline size_t st_packed_size(const struct st_packed* p) {
  return (size_t)(p->cur - p->begin);
}

/* Makes room for n more bytes of elements.  Returns false when out of memory or
 * above the size limit. */
bool st_packed_grow(struct st_packed* p, size_t n);

static inline bool st_packed_add_varint(struct st_packed* p, uint64_t value) {
  if ((size_t)(p->end - p->cur) < ST_MAX_VARINT &&
      !st_packed_grow(p, ST_MAX_VARINT))
    return false;
  p->cur = st_put_varint(p->cur, value);
  return true;
}

/* Appends an element: the low `size` bytes (4 or 8) of a value in little-endian
 * order. */
static inline bool st_packed_add_fixed(struct st_packed* p, uint64_t value,
                                       size_t size) {
  if ((size_t)(p->end - p->cur) < size && !st_packed_grow(p, size))
    return false;
  memcpy(p->cur, &value, size);
  p->cur += size;
  return true;
}

static inline void st_message_append_packed(struct st_message* m,
                                            uint32_t field,
                                            const struct st_packed* p) {
  st_message_append_bytes(m, field, p->begin, st_packed_size(p));
}

void st_packed_free(struct st_packed* p);
