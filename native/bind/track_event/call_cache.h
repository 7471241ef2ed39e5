/* The cache of calls that one thread traces: an encoded BEGIN by code object.
 *
 * All that differs between two calls of a function is the time.  The rest of
 * the packet (category, name, location) stays the same as long as the
 * sequence's interned ids do, so it is kept here by the code object's address
 * (core/call_table.h).  call_blocks.h fills it.
 *
 * Life cycle: made when a thread's first call is traced, owned by its
 * thread_sequence.  It keeps a reference to each code object.  Only the owning
 * thread uses it, with the GIL.
 */
#pragma once

#include "bind/track_event/category_object.h"
#include "core/call_table.h"

struct call_cache {
  CategoryObject* category; /* borrowed: categories live for ever */
  struct st_call_table table;
};

/* The slot of a call, of any epoch, or NULL. */
static inline struct st_call_slot* call_cache_find(const struct call_cache* c,
                                                   CategoryObject* category,
                                                   PyObject* code) {
  if (UNLIKELY(!c || c->category != category))
    return NULL;
  return st_call_table_find(&c->table, code);
}

/* Frees the cache and drops its references.  NULL is allowed. */
void call_cache_free(struct call_cache* c);
