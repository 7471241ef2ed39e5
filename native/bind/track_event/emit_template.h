/* Writes the events of a template.
 *
 *   packet   time | flags | track_event { type | values | flows | block }
 *   block    from template_cache.h, copied
 *   values   debug_annotations { name_iid, value } of the given values
 *
 * The first event in a chunk, and all unusual ones (several sessions, many
 * flows, long values or values of other types), go through st_emit with the
 * constants as their `args`.
 *
 * While a thread records an event, it writes no event of a template: the
 * recording itself may have sent the message that such an event describes.
 */
#pragma once

#include "bind/track_event/event_request.h"

/* Fills the request for an event of the template, with `count` values for the
 * first `count` names.  The request borrows these values. */
void template_request(struct event_request* request,
                      EventTemplateObject* template, PyObject* const* values,
                      Py_ssize_t count);

/* Writes an event of request->template to the slots in `mask`.  The result is
 * that of st_emit. */
uint32_t emit_template(const struct event_request* request, uint32_t mask);

/* A slice that has ended.  A value may be Py_None. */
struct past_slice {
  uint64_t begin, end;
  PyObject* const* values;
  Py_ssize_t count;
};

/* Writes a slice of a template on a track; NULL is the calling thread's.  On
 * that track it takes a short path: after a wait the processor's caches have
 * little of this code, so each line of it counts. */
void emit_past_slice(EventTemplateObject* template, TrackObject* track,
                     const struct past_slice* slice);
