#include "segment.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static size_t bitmap_size(uint32_t capacity) {
  return ((size_t)capacity + 63) / 64 * 8;
}

static void* resized(void* data, size_t size) {
  void* grown = realloc(data, size);
  if (!grown)
    st_memory_fail();
  return grown;
}

void st_segment_grow(struct st_segment* s, uint32_t old, uint32_t capacity) {
  if (s->data)
    s->data = resized(s->data, (size_t)capacity * s->width);
  if (!s->validity)
    return;
  s->validity = resized(s->validity, bitmap_size(capacity));
  memset(s->validity + bitmap_size(old), 0,
         bitmap_size(capacity) - bitmap_size(old));
}

/* Returns the number of bytes that a difference needs. */
static uint8_t width_of(int64_t difference) {
  if (difference == 0)
    return 0;
  if (difference == (int8_t)difference)
    return 1;
  if (difference == (int16_t)difference)
    return 2;
  return difference == (int32_t)difference ? 4 : 8;
}

static void store(void* data, uint8_t width, uint32_t row, int64_t difference) {
  switch (width) {
    case 0:
      break;
    case 1:
      ((int8_t*)data)[row] = (int8_t)difference;
      break;
    case 2:
      ((int16_t*)data)[row] = (int16_t)difference;
      break;
    case 4:
      ((int32_t*)data)[row] = (int32_t)difference;
      break;
    default:
      ((int64_t*)data)[row] = difference;
  }
}

static void widen(struct st_segment* s, uint32_t rows, uint32_t capacity,
                  uint8_t width) {
  void* data = malloc((size_t)capacity * width);
  if (!data)
    st_memory_fail();
  for (uint32_t row = 0; row < rows; row++)
    store(data, width, row, st_segment_difference(s, row));
  free(s->data);
  s->data = data;
  s->width = width;
}

/* Adds the bitmap to a segment whose values are all valid, or all NULL. */
static void add_bitmap(struct st_segment* s, uint32_t rows, uint32_t capacity) {
  s->validity = st_memory_new(bitmap_size(capacity));
  if (s->nulls)
    return;
  memset(s->validity, 0xFF, rows / 8);
  if (rows % 8)
    s->validity[rows / 8] = (uint8_t)((1u << rows % 8) - 1);
}

/* Returns the difference of a value from the base, after making room for it.
 * The first valid value is the base. */
static int64_t make_room(struct st_segment* s, uint32_t rows, uint32_t capacity,
                         int64_t value) {
  if (s->nulls == rows && !s->data)
    s->base = value;
  int64_t difference = (int64_t)((uint64_t)value - (uint64_t)s->base);
  uint8_t width = width_of(difference);
  if (width > s->width)
    widen(s, rows, capacity, width);
  return difference;
}

void st_segment_append(struct st_segment* s, uint32_t row, uint32_t capacity,
                       bool valid, int64_t value) {
  int64_t difference = valid ? make_room(s, row, capacity, value) : 0;
  bool is_mixed = valid ? s->nulls > 0 : s->nulls < row;
  if (is_mixed && !s->validity)
    add_bitmap(s, row, capacity);
  if (valid && s->validity)
    s->validity[row / 8] |= (uint8_t)(1u << row % 8);
  s->nulls += !valid;
  store(s->data, s->width, row, difference);
}

void st_segment_set(struct st_segment* s, uint32_t row, uint32_t rows,
                    uint32_t capacity, bool valid, int64_t value) {
  int64_t difference = valid ? make_room(s, rows, capacity, value) : 0;
  if (st_segment_is_valid(s, row) != valid) {
    if (!s->validity)
      add_bitmap(s, rows, capacity);
    s->validity[row / 8] ^= (uint8_t)(1u << row % 8);
    s->nulls += valid ? -1u : 1u;
  }
  store(s->data, s->width, row, difference);
}

void st_segment_copy32(const struct st_segment* s, uint32_t rows, int32_t* to) {
  for (uint32_t row = 0; row < rows; row++)
    to[row] = (int32_t)st_segment_get(s, row);
}

void st_segment_copy64(const struct st_segment* s, uint32_t rows, int64_t* to) {
  for (uint32_t row = 0; row < rows; row++)
    to[row] = st_segment_get(s, row);
}

void st_segment_free(struct st_segment* s) {
  free(s->data);
  free(s->validity);
  *s = (struct st_segment){0};
}
