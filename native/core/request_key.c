#include "request_key.h"

#include <stdbool.h>

enum {
  NUMBER_DIGITS = 16,
  TRACE = 3, /* Offsets of the traceparent's parts in its text. */
  SPAN = 36,
  FLAGS = 53,
  SIZE = 55,
};

/* 2^64 divided by the golden ratio, an odd number.  Its multiples are evenly
 * spread. */
static const uint64_t kOdd = 0x9E3779B97F4A7C15;

static bool read_hex(const char* text, size_t digits, uint64_t* number) {
  *number = 0;
  for (size_t i = 0; i < digits; i++) {
    char c = text[i];
    bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f'))
      return false;
    *number = *number << 4 | (uint64_t)(decimal ? c - '0' : c - 'a' + 10);
  }
  return true;
}

static bool has_shape(const char* text, size_t size) {
  uint64_t ignored;
  return size >= SIZE && text[TRACE - 1] == '-' && text[SPAN - 1] == '-' &&
         text[FLAGS - 1] == '-' && (size == SIZE || text[SIZE] == '-') &&
         read_hex(text, 2, &ignored) && read_hex(text + FLAGS, 2, &ignored);
}

uint64_t st_traceparent_key(const char* text, size_t size) {
  uint64_t high, low, span;
  if (!has_shape(text, size) || !read_hex(text + TRACE, NUMBER_DIGITS, &high) ||
      !read_hex(text + TRACE + NUMBER_DIGITS, NUMBER_DIGITS, &low) ||
      !read_hex(text + SPAN, NUMBER_DIGITS, &span))
    return 0;
  if (!(high | low) || !span)
    return 0;
  /* The key combines the trace id and the span id.  Some tracers use the low
   * half of the trace id as the first span id, and some number their spans.
   * The multiplication keeps the keys of such requests distinct. */
  uint64_t key = low * kOdd ^ high ^ span;
  return key ? key : 1;
}

uint64_t st_flow_header_key(const char* text, size_t size) {
  uint64_t key;
  return size == NUMBER_DIGITS && read_hex(text, NUMBER_DIGITS, &key) ? key : 0;
}
