/* Source locations of events: file, function and line, interned per sequence. */
#pragma once

#include "bind/track_event/thread_state.h"

/* Return the id of a location; 0 if it has to be left out.  `file` and
 * `function` are str.  Run no Python code. */
uint32_t code_location_iid(struct thread_state* t, struct thread_sequence* s,
                           PyObject* code);
uint32_t source_location_iid(struct thread_state* t, struct thread_sequence* s,
                             PyObject* file, PyObject* function, uint32_t line);

/* Appends the event's field source_location_iid, unless `iid` is 0. */
void append_source_location(struct thread_state* t, uint32_t iid);
