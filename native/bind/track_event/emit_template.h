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

/* Writes the BEGIN of a slice, which is requested, and its END.  Writes nothing
 * while the thread records another event. */
void emit_template_slice(const struct event_request* begin, uint32_t mask,
                         uint64_t end);
