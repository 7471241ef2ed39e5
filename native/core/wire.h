/* Protobuf wire encoding: the byte-level operations that all encoders and
 * decoders use.
 *
 * A field on the wire is a tag, (field_number << 3) | wire_type as a varint,
 * followed by its value:
 *
 *   wire type 0  varint     7 bits a byte, low group first, bit 7 = "more"
 *   wire type 1  fixed64    8 bytes, little endian
 *   wire type 2  delimited  varint length, then that many bytes
 *   wire type 5  fixed32    4 bytes, little endian
 *
 * A length that isn't known yet is reserved as four bytes and filled in later
 * as a *redundant* varint: the first three bytes carry bit 7 even where the
 * rest is zero, so that 26 becomes 9a 80 80 00. Every protobuf parser accepts
 * that form.
 *
 * The functions that write require that the caller has made room: a varint
 * takes at most ST_MAX_VARINT bytes, a tag at most ST_MAX_TAG. The functions
 * that read take an end pointer, never read at or after it, and return NULL on
 * malformed input.
 *
 * All functions are inline: they run several times for each event.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the shared memory ABI and the encoders assume a little-endian machine"
#endif

enum {
  ST_WIRE_VARINT = 0,
  ST_WIRE_FIXED64 = 1,
  ST_WIRE_DELIMITED = 2,
  ST_WIRE_FIXED32 = 5,

  ST_MAX_VARINT = 10,
  ST_MAX_TAG = 5,
  /* The number of bytes that are reserved for a length that is written
   * later. */
  ST_SIZE_FIELD = 4,
};

/* The largest length in a four-byte size field.  In the size field of a
 * fragment, this value is the drop sentinel (trace_writer.h). */
#define ST_MAX_MESSAGE_SIZE 0x0FFFFFFFu

static inline uint32_t st_tag(uint32_t field, uint32_t wire_type) {
  return (field << 3) | wire_type;
}

static inline size_t st_varint_size(uint64_t v) {
  /* 64 - clz is the number of significant bits; each byte of a varint carries
   * 7.  For 1 to 64 bits, 9/64 is near enough to 1/7. */
  unsigned bits = 64u - (unsigned)__builtin_clzll(v | 1);
  return (bits * 9 + 64) / 64;
}

static inline uint8_t* st_put_varint(uint8_t* p, uint64_t v) {
  while (v >= 0x80) {
    *p++ = (uint8_t)(v | 0x80);
    v >>= 7;
  }
  *p++ = (uint8_t)v;
  return p;
}

/* Writes an id, as st_put_varint does.  Most ids are hashes, of nine or ten
 * bytes: these bytes are computed together. */
static inline uint8_t* st_put_id(uint8_t* p, uint64_t v) {
  uint64_t high = v >> 56, low = v & 0x00FFFFFFFFFFFFFFu;
  if (!high)
    return st_put_varint(p, v);
  low = (low & 0x000000000FFFFFFFu) | (low & 0x00FFFFFFF0000000u) << 4;
  low = (low & 0x00003FFF00003FFFu) | (low & 0x0FFFC0000FFFC000u) << 2;
  low = (low & 0x007F007F007F007Fu) | (low & 0x3F803F803F803F80u) << 1;
  low |= 0x8080808080808080u;
  memcpy(p, &low, sizeof low);
  p[8] = (uint8_t)high;
  p[9] = 1;
  return p + 9 + (high >> 7);
}

/* Writes v, at most ST_MAX_MESSAGE_SIZE, as a redundant varint of four
 * bytes. */
static inline void st_put_size_field(uint8_t* p, uint32_t v) {
  p[0] = (uint8_t)(v | 0x80);
  p[1] = (uint8_t)((v >> 7) | 0x80);
  p[2] = (uint8_t)((v >> 14) | 0x80);
  p[3] = (uint8_t)((v >> 21) & 0x7F);
}

static inline uint8_t* st_put_tag(uint8_t* p, uint32_t field, uint32_t wire) {
  return st_put_varint(p, st_tag(field, wire));
}

static inline uint8_t* st_put_u64_field(uint8_t* p, uint32_t field,
                                        uint64_t v) {
  return st_put_varint(st_put_tag(p, field, ST_WIRE_VARINT), v);
}

static inline uint8_t* st_put_fixed64_field(uint8_t* p, uint32_t field,
                                            uint64_t v) {
  p = st_put_tag(p, field, ST_WIRE_FIXED64);
  memcpy(p, &v, sizeof v);
  return p + sizeof v;
}

static inline uint8_t* st_put_double_field(uint8_t* p, uint32_t field,
                                           double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return st_put_fixed64_field(p, field, bits);
}

/* Writes a delimited field: its tag, its length and its bytes. */
static inline uint8_t* st_put_bytes_field(uint8_t* p, uint32_t field,
                                          const void* data, size_t size) {
  p = st_put_tag(p, field, ST_WIRE_DELIMITED);
  p = st_put_varint(p, size);
  memcpy(p, data, size);
  return p + size;
}

/* Copies a text of any size and returns the position after it.  Copies pieces
 * of constant size, which may overlap: a copy of variable size would be a call
 * of memcpy, or a string instruction that takes 10 ns to start. */
static inline uint8_t* st_put_text(uint8_t* p, const char* text, size_t size) {
  uint8_t* end = p + size;
  const char* text_end = text + size;
  if (size >= 16) {
    for (; text < text_end - 64; p += 64, text += 64)
      memcpy(p, text, 64);
    for (; text < text_end - 16; p += 16, text += 16)
      memcpy(p, text, 16);
    memcpy(end - 16, text_end - 16, 16);
  } else if (size >= 8) {
    memcpy(p, text, 8);
    memcpy(end - 8, text_end - 8, 8);
  } else if (size >= 4) {
    memcpy(p, text, 4);
    memcpy(end - 4, text_end - 4, 4);
  } else {
    for (; text < text_end; text++)
      *p++ = (uint8_t)*text;
  }
  return end;
}

static inline uint64_t st_zigzag(int64_t v) {
  return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

/* Reads a varint of at most max_bytes bytes (at most ST_MAX_VARINT).  Returns
 * the position after it.  Returns NULL if the varint is incomplete or too
 * long. */
static inline const uint8_t* st_get_varint_max(const uint8_t* p,
                                               const uint8_t* end,
                                               unsigned max_bytes,
                                               uint64_t* out) {
  uint64_t v = 0;
  for (unsigned i = 0; i < max_bytes && p < end; i++) {
    uint8_t byte = *p++;
    v |= (uint64_t)(byte & 0x7F) << (7 * i);
    if (!(byte & 0x80)) {
      *out = v;
      return p;
    }
  }
  return NULL;
}

static inline const uint8_t* st_get_varint(const uint8_t* p, const uint8_t* end,
                                           uint64_t* out) {
  return st_get_varint_max(p, end, ST_MAX_VARINT, out);
}
