/* Canonical form of test messages, to compare encodings that differ only in the
 * width of their length fields.
 *
 * Test messages follow one rule: field 3 is a nested message, any other
 * delimited field is bytes.
 */
#pragma once

#include "check.h"
#include "core/wire.h"

enum { NESTED_FIELD = 3 };

static inline const uint8_t* read_varint(const uint8_t* p, const uint8_t* end,
                                         uint64_t* value) {
  p = st_get_varint(p, end, value);
  CHECK(p);
  return p;
}

static inline size_t canonicalise(const uint8_t* p, const uint8_t* end,
                                  uint8_t* out);

static inline uint8_t* canonical_delimited(const uint8_t* p, size_t size,
                                           bool nested, uint8_t* out) {
  if (!nested) {
    out = st_put_varint(out, size);
    if (size > 0)
      memcpy(out, p, size);
    return out + size;
  }
  /* Writes the content of a nested message, with room for ST_MAX_VARINT bytes
   * before it.  Then writes the content's length into the room, and moves the
   * content directly behind the length. */
  uint8_t* body = out + ST_MAX_VARINT;
  size_t body_size = canonicalise(p, p + size, body);
  out = st_put_varint(out, body_size);
  memmove(out, body, body_size);
  return out + body_size;
}

/* Writes a message in its canonical form, with minimal lengths, and checks that
 * the message is well-formed.  `out` needs as many bytes as the input, plus
 * ST_MAX_VARINT for each level. */
static inline size_t canonicalise(const uint8_t* p, const uint8_t* end,
                                  uint8_t* out) {
  uint8_t* start = out;
  while (p < end) {
    uint64_t tag, value;
    p = read_varint(p, end, &tag);
    CHECK(tag >> 3 != 0);
    out = st_put_varint(out, tag);
    size_t fixed = 0;
    switch (tag & 7) {
      case ST_WIRE_VARINT:
        p = read_varint(p, end, &value);
        out = st_put_varint(out, value);
        break;
      case ST_WIRE_FIXED64:
        fixed = 8;
        break;
      case ST_WIRE_FIXED32:
        fixed = 4;
        break;
      default:
        CHECK_EQ(tag & 7, ST_WIRE_DELIMITED);
        p = read_varint(p, end, &value);
        CHECK(value <= (size_t)(end - p));
        out = canonical_delimited(p, value, tag >> 3 == NESTED_FIELD, out);
        p += value;
    }
    CHECK(fixed <= (size_t)(end - p));
    memcpy(out, p, fixed);
    out += fixed;
    p += fixed;
  }
  return (size_t)(out - start);
}
