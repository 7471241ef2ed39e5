/* Percentiles of a group of values.
 *
 * A percentile lies between the two values around it, in proportion, as that of
 * the SQL function `percentile`.  Few values are sorted; of many values, each
 * percentile is found byte by byte, in time that is linear in their number.
 */
#pragma once

#include <stdint.h>

struct st_percentiles {
  int64_t p50, p90, p99, max;
};

/* Returns the percentiles of `count` values, at least one, which may be put into
 * another order. */
struct st_percentiles st_percentiles(int64_t* values, uint32_t count);
