/* Source locations of events: file, function and line, interned for each
 * sequence. */
#pragma once

#include "bind/track_event/thread_state.h"

/* A function that returns the name of a code object's slices.  If it is NULL,
 * slices have the qualified name. */
extern PyObject* (*st_code_name_function)(PyObject* code);

/* Returns the name of the slices of a code object, as a borrowed str. */
static inline PyObject* code_name(PyObject* code) {
  return st_code_name_function ? st_code_name_function(code)
                               : ((PyCodeObject*)code)->co_qualname;
}

/* Return the id of a source location.  Return 0 if the location has to be left
 * out.  `file` and `function` are str.  Run no Python code. */
uint32_t code_location_iid(struct thread_state* t, struct thread_sequence* s,
                           PyObject* code);
uint32_t source_location_iid(struct thread_state* t, struct thread_sequence* s,
                             PyObject* file, PyObject* function, uint32_t line);

/* Appends the field source_location_iid to an event, unless `iid` is 0. */
void append_source_location(struct thread_state* t, uint32_t iid);
