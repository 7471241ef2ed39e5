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

/* Returns a new Slice that has only a category and a name.  Returns NULL with
 * an exception set on failure. */
PyObject* slice_new_plain(CategoryObject* category, PyObject* name);
/* Returns a new Slice, which keeps references to the objects of the request.
 * Returns NULL with an exception set on failure. */
PyObject* slice_new(const struct event_request* request);
/* Returns a new Slice for an event of a template.  Such a Slice may write an
 * instant when it is entered, or set a context variable while it is open. */
PyObject* template_slice_new(const struct event_request* request);

/* An entry of a slice: the slots that got the BEGIN, the value of
 * st_start_counter at that time, and the BEGIN's track. */
struct slice_entry {
  uint32_t mask;
  uint32_t start_counter;
  uint64_t track_uuid;
};

/* Begins a slice for a call, and ends that slice.  The code of the called
 * function gives the slice its name and location.  The END names a pending
 * exception, and keeps it set. */
struct slice_entry slice_begin_code(CategoryObject* category, PyObject* code);
void slice_end_code(const struct slice_entry* entry, PyObject* code);

/* Enters a slice and leaves it at once.  Returns false with an exception set on
 * failure. */
bool slice_pass(PyObject* slice);

/* An empty context manager.  All disabled categories share it. */
extern PyObject* st_empty_slice;
