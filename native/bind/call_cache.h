/* The BEGINs of calls, encoded once per code object and announced state.
 *
 * All that differs between two calls of a function is the time.  The rest of
 * the packet (category, name, place) stays the same as long as the sequence's
 * interned ids do, so it is kept here, by the identity of the code object:
 *
 *   slot   code (strong) | epoch | block of bytes
 *
 * A chunk stands on its own, so each of its functions is named in it once.
 * Where a slot is of an earlier epoch that is done without the long way
 * through st_emit: a thousand events fill a chunk, and a program that calls a
 * hundred functions in turn would go that way for every third call.
 *
 * Open addressing, at most half full; doubles up to MAX_CALL_SLOTS, then new
 * ones push old ones out.  Made when a thread's first call is traced.
 */
#ifndef STRETTO_BIND_CALL_CACHE_H_
#define STRETTO_BIND_CALL_CACHE_H_

#include "track_event.h"

enum { FIRST_CALL_SLOTS = 64, MAX_CALL_SLOTS = 4096 };

struct call_slot {
  PyObject* code;
  uint32_t epoch;
  struct st_event_block block;
};

struct call_cache {
  CategoryObject* category; /* borrowed: categories live for ever */
  struct call_slot* slots;
  uint32_t mask, count;
};

/* The slot of a call, of any epoch, or NULL. */
static inline struct call_slot* call_cache_find(const struct call_cache* c,
                                                CategoryObject* category,
                                                PyObject* code) {
  if (UNLIKELY(!c || c->category != category))
    return NULL;
  uint32_t i = identity_hash(code) & c->mask;
  while (c->slots[i].code != code) {
    if (!c->slots[i].code)
      return NULL;
    i = (i + 1) & c->mask;
  }
  return &c->slots[i];
}

/* Writes the BEGIN of a call whose slot is of an earlier epoch, and brings the
 * slot up to date.  False: nothing happened, take the long way. */
bool call_cache_begin_anew(struct thread_sequence* s, CategoryObject* category,
                           struct call_slot* slot, uint64_t timestamp);

/* Remembers a call whose ids the sequence knows by now.  May drop the last
 * reference to another code object: not while a packet is open. */
void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code);
void call_cache_free(struct call_cache* c);

#endif /* STRETTO_BIND_CALL_CACHE_H_ */
