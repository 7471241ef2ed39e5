/* The call cache of one thread: encoded BEGINs, keyed by code object.
 *
 * The BEGINs of two calls of a function differ only in their time.  The rest of
 * the packet (category, name, location) is the same while the sequence's
 * interned ids are valid, so it is cached by the code object's address
 * (core/call_table.h). call_blocks.h fills it.
 *
 * Life cycle: made when a thread's first call is traced, owned by its
 * thread_sequence.  It keeps a reference to each code object.  Only the owning
 * thread uses it, with the GIL.
 */
#pragma once

#include "bind/track_event/category_object.h"
#include "core/call_table.h"

struct call_cache {
  /* The category of the calls.  No strong reference is needed, because
   * categories are never freed. */
  CategoryObject* category;
  struct st_call_table table;
};

/* Returns the cache slot of a call, even if the slot's epoch is over.  Returns
 * NULL if the call has no slot. */
static inline struct st_call_slot* call_cache_find(const struct call_cache* c,
                                                   CategoryObject* category,
                                                   PyObject* code) {
  if (UNLIKELY(!c || c->category != category))
    return NULL;
  return st_call_table_find(&c->table, code);
}

/* Frees the call cache and drops its references to code objects.  The cache may
 * be NULL. */
void call_cache_free(struct call_cache* c);
