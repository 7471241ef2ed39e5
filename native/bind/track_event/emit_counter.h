/* Counters with a plain value, written in place.
 *
 * A program reports the same few counters again and again, with names that are
 * constants of its code.  So the uuid of a counter's track is cached by the
 * identity of the name object.  Counters below other tracks, values that are
 * neither int nor float, and counters that are not described in the chunk yet
 * are recorded by st_emit.
 */
#pragma once

#include "bind/track_event/thread_state.h"

/* Writes a value of a counter to the slots in `mask`.  The parent of the
 * counter's track is the track of the process.  Returns the slots for which the
 * caller has to use st_emit. */
uint32_t emit_counter(PyObject* name, PyObject* value, uint32_t mask);

/* Caches the track of a counter.  st_emit has written the counter to the slots
 * in `mask` before. */
void remember_counter(PyObject* name, uint64_t track_uuid, uint32_t mask);
