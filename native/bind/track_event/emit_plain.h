/* Events with a few plain arguments, written in place.
 *
 * st_emit handles every type of argument, with checks and copies.  Most
 * arguments are small ints, floats, bools and short strings, passed by the same
 * call site again and again.  A call site passes the names of its arguments as
 * a tuple, which is the same object at each call.  So the ids of the names are
 * cached by the identity of the tuple.  The values are encoded straight into
 * the chunk.  The options track, flow and terminating_flow are written here,
 * too.
 *
 * In unusual cases (unknown names, other types, a track that is not described
 * yet, no room in the chunk) nothing is written to the slot, and the caller
 * uses st_emit.
 */
#pragma once

#include "bind/track_event/event_request.h"
#include "bind/track_event/thread_state.h"

/* Writes an event with plain arguments to the slots in `mask`.  Returns the
 * slots for which the caller has to use st_emit. */
uint32_t emit_plain(enum st_event_type type, CategoryObject* category,
                    PyObject* name, uint32_t mask, PyObject* names,
                    PyObject* const* values);

/* Like emit_plain, for an event whose name is a new object, such as an
 * f-string.  So the name is found by its value, or written inline at its first
 * use.  If `names` is NULL, the event has no keywords. */
uint32_t emit_new_name(enum st_event_type type, CategoryObject* category,
                       PyObject* name, uint32_t mask, PyObject* names,
                       PyObject* const* values);

/* Caches the ids of the argument names of a call site.  The sequence has
 * interned these names before. */
void remember_keywords(struct thread_state* t, struct thread_sequence* s,
                       PyObject* names);

/* Writes a flow, given as a Flow or an id.  Returns NULL if the value is
 * something else, or if the flow does not fit before `limit`. */
uint8_t* put_plain_flow(uint8_t* p, const uint8_t* limit, enum event_part part,
                        PyObject* flow);

/* Writes an argument whose value is an exact int, float, bool or str.  Returns
 * NULL if the value has another type, or if the argument does not fit before
 * `limit`. */
uint8_t* put_plain_argument(uint8_t* p, const uint8_t* limit, uint32_t name_iid,
                            PyObject* value);
