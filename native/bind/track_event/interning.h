/* Interning: returns the id of a string, found by the object's identity first
 * and by its value second.
 *
 * A string that is new to the sequence is appended to t->interned, as an entry
 * of InternedData.  Interning runs no Python code.  Only the thread that owns
 * the sequence interns, and it holds the GIL.
 */
#pragma once

#include "bind/track_event/thread_state.h"

/* Caches the interning id of an object, and keeps a strong reference to the
 * object. */
void identity_put(struct thread_state* t, struct st_identity_cache* c,
                  uint32_t epoch, PyObject* key, uint32_t iid);

/* Returns the interning id of a str of this kind.  Returns 0 if the str has to
 * be written inline.  If `cache` is NULL, the str is found by its value
 * only. */
uint32_t intern_string(struct thread_state* t, struct thread_sequence* s,
                       enum st_intern_kind kind,
                       struct st_identity_cache* cache, PyObject* string);

/* Appends an entry of InternedData, encoded as an EventName message.  The
 * entries of other kinds of strings have the same two fields. */
void append_interned(struct bytes_builder* out, uint32_t field, uint32_t iid,
                     const char* data, size_t size);
