/* Address table: values by address, with open addressing.
 *
 *   slots   | - | A, value | C, value | - | B, value | ...     0: a free slot
 *               ^hash(A)   ^hash(A) + 1, because hash(C) == hash(A)
 *
 * At most half of the slots are used.  When an address is removed, the addresses
 * behind it move forward, so there are no marks of removed ones.  The table
 * grows up to a limit; then, or when memory is exhausted, it refuses new
 * addresses.
 *
 * Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_address_slot {
  uint64_t address, value;
};

struct st_address_table {
  struct st_address_slot* slots;
  size_t capacity; /* A power of two, or 0 before the first address. */
  size_t count;
  size_t limit; /* The largest `count`. */
};

/* Stores a value for an address other than 0, instead of its former value, if
 * any.  Returns false if the table is full. */
bool st_address_table_put(struct st_address_table* t, uint64_t address,
                          uint64_t value);
/* Returns the slot of an address; NULL if the table has no such address.  Valid
 * until the table changes. */
const struct st_address_slot* st_address_table_find(
    const struct st_address_table* t, uint64_t address);
/* Removes an address, and stores its value.  Returns false if the table has no
 * such address. */
bool st_address_table_take(struct st_address_table* t, uint64_t address,
                           uint64_t* value);
/* Removes all addresses, and frees the memory. */
void st_address_table_clear(struct st_address_table* t);
