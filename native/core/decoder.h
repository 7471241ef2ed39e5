/* Protobuf decoder: iterates the fields of a message in a buffer, without
 * copying and without reading outside it.
 *
 *   struct st_decoder d;
 *   struct st_field f;
 *   st_decoder_init(&d, data, size);
 *   while (st_decoder_next(&d, &f)) ...
 *   if (st_decoder_left(&d)) ... malformed from here on
 *
 * next() returns false, and keeps its position, at the end of input and at
 * malformed input: an unterminated varint, field number 0, a tag without a
 * value, a length that exceeds the input, an incomplete fixed value, or wire
 * types 3, 4, 6, 7. Fields numbered above 2^24 - 1 and delimited ones above 256
 * MiB are skipped.
 *
 * Source: docs/formats/protozero.md, "Decoding".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct st_field {
  uint32_t number;
  uint32_t wire_type;
  uint64_t value;      /* The value of a varint, fixed32 or fixed64 field. */
  const uint8_t* data; /* The payload of a delimited field. */
  size_t size;         /* The size of a delimited field's payload in bytes. */
};

struct st_decoder {
  const uint8_t* cur;
  const uint8_t* end;
};

static inline void st_decoder_init(struct st_decoder* d, const void* data,
                                   size_t size) {
  d->cur = data;
  d->end = d->cur + size;
}

static inline size_t st_decoder_left(const struct st_decoder* d) {
  return (size_t)(d->end - d->cur);
}

/* Reads any field, for st_decoder_next. */
bool st_decoder_next_any(struct st_decoder* d, struct st_field* out);

static inline bool st_decoder_next(struct st_decoder* d, struct st_field* out) {
  const uint8_t* p = d->cur;
  size_t left = st_decoder_left(d);
  /* Most fields have a tag of one byte, and a value or size of another one. */
  if (left < 2 || p[0] < 8 || (p[0] | p[1]) >= 0x80)
    return st_decoder_next_any(d, out);
  uint32_t type = p[0] & 7;
  bool is_delimited = type == ST_WIRE_DELIMITED && p[1] <= left - 2;
  if (type != ST_WIRE_VARINT && !is_delimited)
    return st_decoder_next_any(d, out);
  out->number = p[0] >> 3;
  out->wire_type = type;
  out->value = p[1];
  out->size = is_delimited ? p[1] : 0;
  out->data = is_delimited ? p + 2 : NULL;
  d->cur = p + 2 + out->size;
  return true;
}

/* Reads one element of a packed field.  Returns the position after the element.
 * Returns NULL if the element is incomplete, or if its wire type cannot be
 * packed. */
const uint8_t* st_get_element(const uint8_t* p, const uint8_t* end,
                              uint32_t wire_type, uint64_t* out);
