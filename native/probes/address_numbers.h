/* Address numbers: numbers addresses in the order in which they are first seen.
 *
 *   entries   | A, 2 | B, 1 | C, 4 | ...      number 1, 2, 3; how often seen
 *   slots     | - | 3 | - | 1 | 2 | ...       by hash: the number; 0: free
 *
 * The entries are also the queue of a walk that sees objects and visits each of
 * them once.  Memory: 24 to 32 bytes an address; no malloc (mapped_array.h).
 *
 * Limits: `max` addresses; then, or when memory is exhausted, new ones get the
 * number 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "probes/mapped_array.h"

struct st_numbered {
  uint64_t address;
  uint32_t seen;
};

struct st_address_numbers {
  ST_MAPPED_ARRAY(struct st_numbered) entries; /* That of number 1 first. */
  uint32_t* slots;
  size_t slot_count; /* A power of two, or 0 before the first address. */
  uint32_t max;      /* The largest number. */
};

/* Returns the number of an address, and counts that it was seen; 0 if there is
 * no room. */
uint32_t st_number_of(struct st_address_numbers* n, uint64_t address);
/* Returns the number of an address; 0 if it has none. */
uint32_t st_number_known(const struct st_address_numbers* n, uint64_t address);
void st_address_numbers_clear(struct st_address_numbers* n);
