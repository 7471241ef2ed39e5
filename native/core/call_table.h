/* Call table: the encoded BEGINs of calls, by the code object's address.
 *
 * Open addressing within groups of eight slots.  The places of a code object
 * are those of the group that its hash lies in, in an order of its own:
 *
 *   home ^ 0, home ^ 1, ... home ^ 7         home = hash & mask
 *
 * A look-up ends at the code, at an empty slot, or after eight slots: it ends
 * in a full table, too.  The table doubles when half of it, or one group, is
 * full: the codes of a group go to one of two groups, so they always fit.  At
 * ST_MAX_CALLS slots a new code pushes out the one at its home.
 *
 * The caller owns the codes: he keeps an object alive while it is in a slot,
 * and frees what the slots hold before he destroys the table.
 */
#pragma once

#include <stdint.h>

#include "identity_cache.h"
#include "track_event.h"

enum { ST_MIN_CALLS = 64, ST_MAX_CALLS = 4096, ST_CALL_GROUP = 8 };

struct st_call_slot {
  void* code;     /* NULL: empty */
  uint32_t epoch; /* in which the block's ids hold */
  struct st_event_block block;
};

/* All zero is an empty one. */
struct st_call_table {
  struct st_call_slot* slots;
  uint32_t mask, count;
};

/* The slot of the code, of any epoch, or NULL. */
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

/* The slot of the code, else one for the caller to put it in: it is empty, or
 * holds another code, which is pushed out.  NULL: no memory. */
struct st_call_slot* st_call_table_place(struct st_call_table* t,
                                         const void* code);
/* Frees the slots. */
void st_call_table_destroy(struct st_call_table* t);
