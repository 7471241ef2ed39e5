/* Keys: numbers for keys of three integers, such as an id in the state of a
 * sequence.  The numbers count from 0, in the order of the first use, so that
 * they are the indexes of an array of values.
 *
 * Hostile keys: the hash depends on the address of the struct.
 */
#pragma once

#include "memory.h"

struct st_key {
  uint64_t a, b, c;
};

struct st_keys {
  struct st_map by_hash; /* Number + 1. */
  ST_ARRAY(struct st_key) keys;
};

/* Returns the number of the key; adds the key if it is new. */
uint32_t st_key_number(struct st_keys* k, struct st_key key);
void st_keys_free(struct st_keys* k);
