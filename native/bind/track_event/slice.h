/* The Python type Slice: the context manager behind Category.slice.
 *
 * A slice remembers for each entry which slots got its BEGIN, the start counter
 * then, and the track; its END goes there and nowhere else.  An object may be
 * entered again, also while it is open: entries are a small stack, the first
 * one inline.
 *
 * Life cycle: objects are reused through a free list, from tp_dealloc only.
 * Used with the GIL.
 */
#pragma once

#include "bind/track_event/event_request.h"

/* A new Slice, with references to what the request says.  NULL: an exception is
 * set. */
PyObject* slice_new(const struct event_request* request);
/* The same for an event of a template: also an instant at the entry, or with a
 * context variable set while it is open. */
PyObject* template_slice_new(const struct event_request* request);

/* Enters and leaves the slice.  False: an exception is set. */
bool slice_pass(PyObject* slice);

/* Does nothing; shared by all disabled categories. */
extern PyObject* st_empty_slice;
