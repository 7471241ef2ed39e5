/* Filter bytecode for tests: encodes words as varints with a checksum at the
 * end. */
#pragma once

#include "filter_bytecode.h"
#include "wire.h"

#define SIMPLE(field) ((uint32_t)(field) << 3 | ST_FILTER_SIMPLE_FIELD)
#define RANGE(field, n) \
  ((uint32_t)(field) << 3 | ST_FILTER_SIMPLE_FIELD_RANGE), (n)
#define NESTED(field, message) \
  ((uint32_t)(field) << 3 | ST_FILTER_NESTED_FIELD), (message)
#define STRING(field) ((uint32_t)(field) << 3 | ST_FILTER_STRING)
#define TYPED(field, type) \
  ((uint32_t)(field) << 3 | ST_FILTER_STRING_WITH_TYPE), (type)
#define END ST_FILTER_END_OF_MESSAGE

#define WORDS(...) ((const uint32_t[]){__VA_ARGS__})
#define COUNT(...) (sizeof WORDS(__VA_ARGS__) / sizeof(uint32_t))

struct code {
  uint8_t data[4096];
  size_t size;
};

static inline struct code make_code(const uint32_t* words, size_t count) {
  struct code code;
  uint8_t* p = code.data;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < count; i++) {
    p = st_put_varint(p, words[i]);
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (words[i] >> shift & 0xFF)) * 1099511628211u;
  }
  p = st_put_varint(p, (uint32_t)hash);
  code.size = (size_t)(p - code.data);
  return code;
}

#define CODE(...) make_code(WORDS(__VA_ARGS__), COUNT(__VA_ARGS__))
