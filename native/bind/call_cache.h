/* The BEGINs of calls, encoded once per code object and announced state.
 *
 * All that differs between two calls of a function is the time.  The rest of
 * the packet (category, name, place) stays the same as long as the sequence's
 * interned ids do, so it is kept here, by the identity of the code object:
 *
 *   slot   code (strong) | epoch | block of bytes
 *
 * Direct-mapped; made when a thread's first call is traced.
 */
#ifndef STRETTO_BIND_CALL_CACHE_H_
#define STRETTO_BIND_CALL_CACHE_H_

#include "track_event.h"

enum { CALL_SLOTS = 256 };

struct call_slot {
  PyObject* code;
  uint32_t epoch;
  struct st_event_block block;
};

struct call_cache {
  CategoryObject* category; /* borrowed: categories live for ever */
  struct call_slot slots[CALL_SLOTS];
};

/* The block of a call, or NULL. */
static inline const struct st_event_block* call_cache_find(
    const struct call_cache* c, CategoryObject* category, PyObject* code,
    uint32_t epoch) {
  if (UNLIKELY(!c))
    return NULL;
  const struct call_slot* s = &c->slots[identity_hash(code) % CALL_SLOTS];
  bool found = s->code == code && s->epoch == epoch && c->category == category;
  return LIKELY(found) ? &s->block : NULL;
}

/* Remembers a call whose ids the sequence knows by now.  May drop the last
 * reference to another code object: not while a packet is open. */
void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code);
void call_cache_free(struct call_cache* c);

#endif /* STRETTO_BIND_CALL_CACHE_H_ */
