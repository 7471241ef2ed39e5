/* The BEGINs of calls, encoded once per code object and announced state.
 *
 * All that differs between two calls of a function is the time.  The rest of
 * the packet (category, name, place) stays the same as long as the sequence's
 * interned ids do, so it is kept here, by the code object's address
 * (core/call_table.h); the cache holds the code by a strong reference.
 *
 * A chunk stands on its own, so each of its functions is named in it once.
 * Where a slot is of an earlier epoch that is done without the long way
 * through st_emit: a thousand events fill a chunk, and a program that calls a
 * hundred functions in turn would go that way for every third call.
 *
 * Made when a thread's first call is traced.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_CALL_CACHE_H_
#define STRETTO_BIND_TRACK_EVENT_CALL_CACHE_H_

#include "bind/track_event/track_event.h"
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

/* Writes the BEGIN of a call whose slot is of an earlier epoch, and brings the
 * slot up to date.  False: nothing happened, take the long way. */
bool call_cache_begin_anew(struct thread_sequence* s, CategoryObject* category,
                           struct st_call_slot* slot, uint64_t timestamp);

/* Remembers a call whose ids the sequence knows by now.  May drop the last
 * reference to another code object: not while a packet is open. */
void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code);
void call_cache_free(struct call_cache* c);

#endif /* STRETTO_BIND_TRACK_EVENT_CALL_CACHE_H_ */
