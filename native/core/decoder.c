#include "decoder.h"

#define ST_MAX_FIELD_NUMBER ((1u << 24) - 1)

/* Parses the value behind a tag.  Returns the position after it, or NULL. */
static const uint8_t* read_value(const uint8_t* p, const uint8_t* end,
                                 struct st_field* f) {
  size_t left = (size_t)(end - p);
  switch (f->wire_type) {
    case ST_WIRE_VARINT:
      return st_get_varint(p, end, &f->value);
    case ST_WIRE_FIXED64:
      if (left < 8)
        return NULL;
      memcpy(&f->value, p, 8);
      return p + 8;
    case ST_WIRE_FIXED32:
      if (left < 4)
        return NULL;
      memcpy(&f->value, p, 4);
      return p + 4;
    case ST_WIRE_DELIMITED:
      p = st_get_varint(p, end, &f->value);
      if (!p || f->value > (size_t)(end - p))
        return NULL;
      f->data = p;
      f->size = (size_t)f->value;
      return p + f->size;
    default:
      return NULL;
  }
}

/* True if readers are to see this one. */
static bool is_in_range(const struct st_field* f) {
  return f->number <= ST_MAX_FIELD_NUMBER &&
         (f->wire_type != ST_WIRE_DELIMITED || f->size <= ST_MAX_MESSAGE_SIZE);
}

bool st_decoder_next(struct st_decoder* d, struct st_field* out) {
  do {
    struct st_field f = {0};
    uint64_t tag;
    const uint8_t* p = st_get_varint(d->cur, d->end, &tag);
    if (p) {
      f.number = (uint32_t)(tag >> 3);
      f.wire_type = (uint32_t)(tag & 7);
      p = f.number ? read_value(p, d->end, &f) : NULL;
    }
    if (!p)
      return false;
    d->cur = p;
    *out = f;
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
