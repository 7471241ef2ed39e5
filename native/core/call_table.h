/* Call table: encoded BEGINs of calls, keyed by the code object's address.
 *
 * Open addressing within groups of eight slots.  A code object may be in any
 * slot of the group of its hash.  Its slots are searched in this order:
 *
 *   home ^ 0, home ^ 1, ... home ^ 7         home = hash & mask
 *
 * A lookup ends at the code, at an empty slot, or after eight slots, so it also
 * ends in a full table.  The table doubles when half of it, or one group, is
 * full.  The codes of one group then belong to one of two groups, so they
 * always fit.  At ST_MAX_CALLS slots the table no longer grows: a new code
 * replaces the one in its home slot.
 *
 * The caller owns the references to the codes: it keeps an object alive while
 * the object is in a slot, and drops all references before it destroys the
 * table.
 */
#pragma once

#include <stdint.h>

#include "identity_cache.h"
#include "track_event.h"

enum { ST_MIN_CALLS = 64, ST_MAX_CALLS = 4096, ST_CALL_GROUP = 8 };

struct st_call_slot {
  void* code; /* The address of the code object; NULL if the slot is empty. */
  /* The interning ids in `block` are valid in this epoch of the sequence. */
  uint32_t epoch;
  struct st_event_block block;
};

/* A table of encoded BEGIN events.  A zeroed struct is an empty table. */
struct st_call_table {
  struct st_call_slot* slots;
  uint32_t mask, count;
};

/* Returns the slot of the code object, even if the slot's epoch is over.
 * Returns NULL if the code object has no slot. */
static inline struct st_call_slot* st_call_table_find(
    const struct st_call_table* t, const void* code) {
  if (__builtin_expect(!t->slots, 0))
    return NULL;
  uint32_t home = st_identity_hash(code) & t->mask;
  for (uint32_t i = 0; i < ST_CALL_GROUP; i++) {
    struct st_call_slot* slot = &t->slots[home ^ i];
    if (slot->code == code)
      return slot;
    if (!slot->code)
      break;
  }
  return NULL;
}

/* Returns the slot of the code object.  If it has none, returns the slot that
 * the caller has to fill: an empty one, or one that holds another code object.
 * Returns NULL when out of memory. */
struct st_call_slot* st_call_table_place(struct st_call_table* t,
                                         const void* code);
/* Frees the memory of the call table. */
void st_call_table_destroy(struct st_call_table* t);
