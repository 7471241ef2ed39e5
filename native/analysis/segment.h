/* Segment: up to 4,096 values of a column, in little memory.
 *
 * Problem: a trace has millions of rows, and most of their numbers are close to
 * each other.  A segment keeps the first value, and what the others differ from
 * it, in as many bytes as the largest difference needs:
 *
 *   base      | 1000000140
 *   data      | 0 | 17 | -3 | 0 | ...     width 1: a byte per row
 *   validity  | 1   1    1    0   ...     a bit per row: 0 is NULL
 *
 * A value that needs more bytes widens the segment.  A segment whose values are
 * equal has no data; one whose values are all valid, or all NULL, no validity.
 *
 * Life cycle: all zero; append the values in order, change them, free.  The
 * owner knows the number of values (`rows`), and how many values the memory has
 * to hold (`capacity`, at most ST_SEGMENT_ROWS).  Reals are stored as
 * integers (table.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_SEGMENT_ROWS = 1 << 12 };

struct st_segment {
  void* data;        /* NULL while all values are equal. */
  uint8_t* validity; /* NULL while all values are valid, or all are NULL. */
  int64_t base;      /* The first value. */
  uint32_t nulls;
  uint8_t width; /* Bytes of a difference: 0, 1, 2, 4 or 8. */
};

/* Adds a value after `row` others; `value` is ignored if it is not valid. */
void st_segment_append(struct st_segment* s, uint32_t row, uint32_t capacity,
                       bool valid, int64_t value);
/* Changes a value. */
void st_segment_set(struct st_segment* s, uint32_t row, uint32_t rows,
                    uint32_t capacity, bool valid, int64_t value);
/* Makes room for `capacity` values instead of `old`. */
void st_segment_grow(struct st_segment* s, uint32_t old, uint32_t capacity);
/* These functions copy all values as integers of 32 or 64 bits; NULL is
 * anything. */
void st_segment_copy32(const struct st_segment* s, uint32_t rows, int32_t* to);
void st_segment_copy64(const struct st_segment* s, uint32_t rows, int64_t* to);
void st_segment_free(struct st_segment* s);

static inline bool st_segment_is_valid(const struct st_segment* s,
                                       uint32_t row) {
  return s->validity ? s->validity[row / 8] >> row % 8 & 1 : s->nulls == 0;
}

/* Returns the difference of a value from the base. */
static inline int64_t st_segment_difference(const struct st_segment* s,
                                            uint32_t row) {
  switch (s->width) {
    case 0:
      return 0;
    case 1:
      return ((const int8_t*)s->data)[row];
    case 2:
      return ((const int16_t*)s->data)[row];
    case 4:
      return ((const int32_t*)s->data)[row];
    default:
      return ((const int64_t*)s->data)[row];
  }
}

/* Returns a value; anything if it is NULL. */
static inline int64_t st_segment_get(const struct st_segment* s, uint32_t row) {
  return (int64_t)((uint64_t)s->base + (uint64_t)st_segment_difference(s, row));
}
