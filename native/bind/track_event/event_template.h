/* EventTemplate: an event of which all but a few values are known.
 *
 *   t = category.template("Echo", "txid", "bytes", role="send", ...)
 *   t.instant(7, 32)                  the same as, for less than half of it,
 *   category.instant("Echo", txid=7, bytes=32, role="send", ...)
 *
 * An instrumented library records the same events again and again: caller,
 * callee and transport stay the same, number and size differ.  What stays the
 * same is encoded once for each chunk, with the chunk's interned ids, and copied
 * (template_blocks.h, emit_template.h).
 *
 * Life cycle: a template keeps its category, names and constants alive, and
 * never changes.  Used with the GIL.
 */
#pragma once

#include "bind/track_event/event_request.h"

extern PyTypeObject* st_event_template_type;

/* A new template from the arguments of Category.template.  NULL: an exception
 * is set. */
PyObject* template_new(CategoryObject* category, PyObject* const* args,
                       Py_ssize_t count, PyObject* kwnames);

/* Makes the request one for an event of the template, with the first `count`
 * of its values.  The request borrows them. */
void template_request(struct event_request* request,
                      EventTemplateObject* template, PyObject* const* values,
                      Py_ssize_t count);
