/* Fills the call cache: the BEGIN of a call, encoded once per code object and
 * epoch.
 *
 * A chunk stands on its own, so each function is named once in each chunk.  A
 * cached call of an earlier epoch is named again here, without st_emit: a
 * thousand events fill a chunk, and a program that calls a hundred functions in
 * turn would otherwise go through st_emit for every third call.
 */
#pragma once

#include "bind/track_event/call_cache.h"
#include "bind/track_event/thread_sequence.h"

/* Writes the BEGIN of a call whose slot is of an earlier epoch, and brings the
 * slot up to date.  False: nothing was written; call st_emit. */
bool call_cache_begin_anew(struct thread_sequence* s, CategoryObject* category,
                           struct st_call_slot* slot, uint64_t timestamp);

/* Remembers a call whose ids the sequence knows by now.  May drop the last
 * reference to another code object: not while a packet is open. */
void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code);
