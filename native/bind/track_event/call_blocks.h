/* Fills the call cache: encodes the BEGIN of a call once per code object and
 * epoch.
 *
 * Each chunk repeats the interned names that it uses, so each function is named
 * once in each chunk.  If the cached BEGIN of a call was encoded for an earlier
 * chunk (an earlier epoch), this unit writes the names of the call into the new
 * chunk by itself, without st_emit.  A chunk holds about a thousand events, so
 * a program that calls a hundred functions in turn would otherwise need st_emit
 * for every third call.
 */
#pragma once

#include "bind/track_event/call_cache.h"
#include "bind/track_event/thread_sequence.h"

/* Writes the BEGIN of a call whose cache slot belongs to an earlier epoch, and
 * updates the slot.  Returns false, with nothing written, if the caller has to
 * use st_emit. */
bool call_cache_begin_anew(struct thread_sequence* s, CategoryObject* category,
                           struct st_call_slot* slot, uint64_t timestamp);

/* Puts a call into the cache.  The sequence has interned its names.  May drop
 * the last reference to another code object, so no packet may be open. */
void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code);
