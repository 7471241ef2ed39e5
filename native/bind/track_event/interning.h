/* Strings to interned ids: by the identity of the object first, by value second.
 *
 * Bytes: a string that is new to the sequence is appended to t->interned as an
 * entry of InternedData.  Runs no Python code; used by the owning thread with
 * the GIL.
 */
#pragma once

#include "bind/track_event/thread_state.h"

/* Caches the id of an object, by a strong reference. */
void identity_put(struct thread_state* t, struct st_identity_cache* c,
                  uint32_t epoch, PyObject* key, uint32_t iid);

/* The id of a str among those of `kind`.  0: it has to be written inline.  A
 * cache of NULL: look it up by value only. */
uint32_t intern_string(struct thread_state* t, struct thread_sequence* s,
                       enum st_intern_kind kind,
                       struct st_identity_cache* cache, PyObject* string);
