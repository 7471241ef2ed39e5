#include "analysis/percentiles.h"

#include <stdlib.h>

#include "check.h"

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

/* The value between the two sorted values around a place. */
static int64_t model(const int64_t* sorted, uint32_t count, uint32_t percent) {
  uint64_t place = (uint64_t)(count - 1) * percent;
  int64_t low = sorted[place / 100], high = sorted[(place + 99) / 100];
  return low + ((high - low) * (int64_t)(place % 100) + 50) / 100;
}

/* Values up to 2^bits, the first of them 2^bits. */
static void check_percentiles(uint32_t count, uint32_t bits) {
  int64_t* values = malloc(count * sizeof *values);
  uint64_t state = 12345;
  for (uint32_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values[i] = i ? (int64_t)(state >> (64 - bits)) : (int64_t)1 << bits;
  }
  struct st_percentiles found = st_percentiles(values, count);
  qsort(values, count, sizeof *values, compare);
  CHECK_EQ(found.p50, model(values, count, 50));
  CHECK_EQ(found.p90, model(values, count, 90));
  CHECK_EQ(found.p99, model(values, count, 99));
  CHECK_EQ(found.max, values[count - 1]);
  free(values);
}

static void percentiles_are_between_the_sorted_values(void) {
  static const uint32_t kCounts[] = {1, 2, 100, 2047, 2048, 40000};
  static const uint32_t kBits[] = {1, 7, 8, 20, 40};
  for (uint32_t i = 0; i < 6; i++) {
    for (uint32_t k = 0; k < 5; k++)
      check_percentiles(kCounts[i], kBits[k]);
  }
}

int main(void) {
  RUN(percentiles_are_between_the_sorted_values);
  return 0;
}
