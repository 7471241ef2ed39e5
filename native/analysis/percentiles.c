#include "percentiles.h"

#include <stdbool.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

/* Returns the value that is at `rank` after sorting.  Finds its bytes one after
 * the other, by counting those of the values that agree in the bytes before. */
static int64_t find_rank(const int64_t* values, uint32_t count, uint32_t rank,
                         int64_t min, int64_t max) {
  uint64_t prefix = 0, largest = (uint64_t)max - (uint64_t)min;
  uint32_t shift = 56;
  while (shift && !(largest >> shift))
    shift -= 8;
  for (;; shift -= 8) {
    uint32_t numbers[256] = {0}, byte = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint64_t value = ((uint64_t)values[i] - (uint64_t)min) >> shift;
      numbers[value & 0xFF] += value >> 8 == prefix;
    }
    while (rank >= numbers[byte])
      rank -= numbers[byte++];
    prefix = prefix << 8 | byte;
    if (!shift)
      return (int64_t)((uint64_t)min + prefix);
  }
}

/* Returns the value after that of a rank, which is `value`. */
static int64_t next_rank(const int64_t* values, uint32_t count, uint32_t rank,
                         int64_t value) {
  int64_t next = INT64_MAX;
  uint32_t not_above = 0;
  for (uint32_t i = 0; i < count; i++) {
    not_above += values[i] <= value;
    if (values[i] > value && values[i] < next)
      next = values[i];
  }
  return not_above > rank + 1 ? value : next;
}

/* The number of values from which sorting takes longer than counting. */
enum { MANY = 2048 };

static int64_t percentile(const int64_t* values, uint32_t count,
                          uint32_t percent, int64_t min, int64_t max) {
  uint64_t place = (uint64_t)(count - 1) * percent;
  uint32_t rank = (uint32_t)(place / 100), rest = (uint32_t)(place % 100);
  bool sorted = count < MANY;
  int64_t low =
      sorted ? values[rank] : find_rank(values, count, rank, min, max);
  if (!rest)
    return low;
  int64_t high =
      sorted ? values[rank + 1] : next_rank(values, count, rank, low);
  uint64_t gap = (uint64_t)high - (uint64_t)low;
  /* Divided first, so that no duration overflows. */
  gap = gap / 100 * rest + (gap % 100 * rest + 50) / 100;
  return (int64_t)((uint64_t)low + gap);
}

struct st_percentiles st_percentiles(int64_t* values, uint32_t count) {
  int64_t min = values[0], max = values[0];
  for (uint32_t i = 0; i < count; i++) {
    min = values[i] < min ? values[i] : min;
    max = values[i] > max ? values[i] : max;
  }
  if (count < MANY)
    qsort(values, count, sizeof *values, compare);
  return (struct st_percentiles){
      .p50 = percentile(values, count, 50, min, max),
      .p90 = percentile(values, count, 90, min, max),
      .p99 = percentile(values, count, 99, min, max),
      .max = max,
  };
}
