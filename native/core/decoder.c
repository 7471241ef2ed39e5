#include "decoder.h"

#define ST_MAX_FIELD_NUMBER ((1u << 24) - 1)

/* Decodes the varint in the 8 bytes at p, if the varint ends within them.
 * Finds the first byte in which bit 7 is 0.  Then joins the groups of 7 bits,
 * pair by pair. */
static const uint8_t* get_short_varint(const uint8_t* p, uint64_t* out) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  uint64_t ends = ~v & 0x8080808080808080u;
  if (!ends)
    return NULL;
  v &= ends ^ (ends - 1);
  v = (v & 0x007F007F007F007Fu) | (v & 0x7F007F007F007F00u) >> 1;
  v = (v & 0x00003FFF00003FFFu) | (v & 0x3FFF00003FFF0000u) >> 2;
  v = (v & 0x000000000FFFFFFFu) | (v & 0x0FFFFFFF00000000u) >> 4;
  *out = v;
  return p + __builtin_ctzll(ends) / 8 + 1;
}

static inline const uint8_t* get_varint(const uint8_t* p, const uint8_t* end,
                                        uint64_t* out) {
  if (p < end && *p < 0x80) {
    *out = *p;
    return p + 1;
  }
  const uint8_t* after = end - p >= 8 ? get_short_varint(p, out) : NULL;
  return after ? after : st_get_varint(p, end, out);
}

/* Parses a field's value.  Returns the position after it, or NULL if the value
 * is malformed. */
static inline const uint8_t* read_value(const uint8_t* p, const uint8_t* end,
                                        struct st_field* f) {
  size_t left = (size_t)(end - p);
  f->data = NULL;
  f->size = 0;
  switch (f->wire_type) {
    case ST_WIRE_VARINT:
      return get_varint(p, end, &f->value);
    case ST_WIRE_FIXED64:
      if (left < 8)
        return NULL;
      memcpy(&f->value, p, 8);
      return p + 8;
    case ST_WIRE_FIXED32:
      if (left < 4)
        return NULL;
      f->value = 0;
      memcpy(&f->value, p, 4);
      return p + 4;
    case ST_WIRE_DELIMITED:
      p = get_varint(p, end, &f->value);
      if (!p || f->value > (size_t)(end - p))
        return NULL;
      f->data = p;
      f->size = (size_t)f->value;
      return p + f->size;
    default:
      return NULL;
  }
}

/* Returns whether the decoder returns this field to its caller.  The decoder
 * skips all other fields. */
static bool is_in_range(const struct st_field* f) {
  return f->number <= ST_MAX_FIELD_NUMBER &&
         (f->wire_type != ST_WIRE_DELIMITED || f->size <= ST_MAX_MESSAGE_SIZE);
}

bool st_decoder_next_any(struct st_decoder* d, struct st_field* out) {
  do {
    uint64_t tag;
    const uint8_t* p = get_varint(d->cur, d->end, &tag);
    if (!p)
      return false;
    out->number = (uint32_t)(tag >> 3);
    out->wire_type = (uint32_t)(tag & 7);
    p = out->number ? read_value(p, d->end, out) : NULL;
    if (!p)
      return false;
    d->cur = p;
  } while (!is_in_range(out));
  return true;
}

const uint8_t* st_get_element(const uint8_t* p, const uint8_t* end,
                              uint32_t wire_type, uint64_t* out) {
  if (wire_type == ST_WIRE_DELIMITED)
    return NULL;
  struct st_field f = {.wire_type = wire_type};
  p = read_value(p, end, &f);
  *out = f.value;
  return p;
}
