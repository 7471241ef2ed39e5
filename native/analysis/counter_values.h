/* Counter values: the tail of a track event with counters (event_list.h).
 *
 *   count | track value | track value | ...
 *
 * count is a byte; a track is the varint of its index in st_tracks; a value has
 * the 8 bytes of a double.  The first value of an event of the type COUNTER is
 * its own; the others are its extra counters.  Differences are already sums.
 */
#pragma once

#include "core/wire.h"

/* The own value, and 8 extra ones each of integers and doubles. */
enum { ST_MAX_COUNTER_VALUES = 1 + 17 * (ST_MAX_VARINT + 8) };

/* Writes a value.  Returns the position after it. */
static inline uint8_t* st_counter_value_put(uint8_t* to, uint32_t track,
                                            double value) {
  to = st_put_varint(to, track);
  memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

/* Reads a value that was written.  Returns the position after it. */
static inline const uint8_t* st_counter_value_get(const uint8_t* from,
                                                  uint32_t* track,
                                                  double* value) {
  uint64_t number = 0;
  from = st_get_varint(from, from + ST_MAX_VARINT, &number);
  *track = (uint32_t)number;
  memcpy(value, from, sizeof *value);
  return from + sizeof *value;
}
