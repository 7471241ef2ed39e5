/* The Python type Slice: the context manager behind Category.slice.
 *
 * A slice stores for each entry the slots that got its BEGIN, the start counter
 * at that time, and the track.  Its END is written to these slots only.  A
 * slice may be entered again while it is open, so entries form a small stack,
 * with the first one inline.
 *
 * Life cycle: objects are reused through a free list, from tp_dealloc only.
 * Used with the GIL.
 */
#pragma once

#include "bind/track_event/event_request.h"

/* Returns a new Slice with references to the request's objects.  NULL with an
 * exception set on failure. */
PyObject* slice_new(const struct event_request* request);
/* Returns a new Slice for an event of a template.  It may write an instant when
 * entered, or set a context variable while open. */
PyObject* template_slice_new(const struct event_request* request);

/* An entry of a slice: the slots that got its BEGIN, st_start_counter at that
 * time, and the track. */
struct slice_entry {
  uint32_t mask;
  uint32_t start_counter;
  uint64_t track_uuid;
};

/* Begins a slice that is named and located by the code of a function, which is
 * called next, and ends it.  The END names a pending exception, and keeps it set. */
struct slice_entry slice_begin_code(CategoryObject* category, PyObject* code);
void slice_end_code(const struct slice_entry* entry, PyObject* code);

/* Enters and leaves the slice at once.  Returns false with an exception set on
 * failure. */
bool slice_pass(PyObject* slice);

/* An empty context manager, which all disabled categories share. */
extern PyObject* st_empty_slice;
