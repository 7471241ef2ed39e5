/* EventTemplate: an event with constant category, name and arguments, except
 * for a few values.
 *
 *   t = category.template("Echo", "txid", "bytes", role="send", ...)
 *   t.instant(7, 32)                  at less than half the cost of
 *   category.instant("Echo", txid=7, bytes=32, role="send", ...)
 *
 * An instrumented library records the same events again and again: caller,
 * callee and transport stay the same, number and size differ.  The constant
 * part is encoded once for each chunk, with the chunk's interned ids, and then
 * copied (template_blocks.h, emit_template.h).
 *
 * Life cycle: a template keeps its category, names and constants alive, and
 * never changes.  Used with the GIL.
 */
#pragma once

#include "bind/track_event/event_request.h"

extern PyTypeObject* st_event_template_type;

/* The method Category.template. */
st_bind_function category_template;
