/* Message arena: the open messages of one stream, for callers whose handles
 * outlive the messages.
 *
 * Open messages form a chain, root first, so one struct per depth is enough.
 * The struct is allocated when a message first reaches that depth.  All
 * messages of that depth use it, one after the other:
 *
 *   root -> depth 1 -> depth 2 -> ...     serial: 1, 7, 32
 *
 * Life cycle: a handle is an arena message together with the serial that it had
 * when the message was opened.  As soon as another message uses the struct, the
 * serials differ, and the handle is stale; the memory stays valid until the
 * arena is freed.
 */
#pragma once

#include "message.h"

struct st_arena_message {
  struct st_message message;
  uint64_t serial;
  /* The struct for the messages one level deeper, or NULL. */
  struct st_arena_message* deeper;
};

/* Allocates the struct for messages nested in `parent`.  Returns false when out
 * of memory. */
bool st_arena_deepen(struct st_arena_message* parent);

/* Opens a message nested in `parent`, whose handle must not be stale.  Returns
 * NULL when out of memory. */
static inline struct st_arena_message* st_arena_begin_nested(
    struct st_arena_message* parent, uint32_t field) {
  if (!parent->deeper && !st_arena_deepen(parent))
    return NULL;
  parent->deeper->serial++;
  st_message_begin_nested(&parent->message, &parent->deeper->message, field);
  return parent->deeper;
}

/* Frees all structs of the arena except the root, which the caller owns. */
void st_arena_free(struct st_arena_message* root);
