/* Message arena: the open messages of one stream, for callers whose handles
 * outlive the messages.
 *
 * Open messages form a chain, root first, so that one struct for each depth is
 * enough.  It is made when that depth is first reached, and then used by every
 * message of that depth, one after the other:
 *
 *   root -> depth 1 -> depth 2 -> ...     serial: 1, 7, 32
 *
 * Life cycle: a handle is an arena message together with the serial that it
 * had when the message was opened.  As soon as another message takes the place
 * the serials differ, and the handle is stale; the memory stays valid until
 * the arena is freed.
 */
#pragma once

#include "message.h"

struct st_arena_message {
  struct st_message message;
  uint64_t serial;
  struct st_arena_message* deeper; /* or NULL */
};

/* Makes the place below `parent`; false if there is no memory. */
bool st_arena_deepen(struct st_arena_message* parent);

/* Opens a message below `parent`, which isn't stale.  NULL: no memory. */
static inline struct st_arena_message* st_arena_begin_nested(
    struct st_arena_message* parent, uint32_t field) {
  if (!parent->deeper && !st_arena_deepen(parent))
    return NULL;
  parent->deeper->serial++;
  st_message_begin_nested(&parent->message, &parent->deeper->message, field);
  return parent->deeper;
}

/* Frees what is below the root; the root itself is the caller's. */
void st_arena_free(struct st_arena_message* root);
