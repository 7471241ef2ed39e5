/* Writes slices of a template that have ended: waits.
 *
 * A slice on the thread's own track is copied, if the last one with these values
 * was kept (past_memo.h); or it is encoded here.
 *
 *   packet   interned_data { text }       if a repeated text has no id yet
 *   packet   time | flags | track_event { BEGIN | values | block }
 *   packet   time | flags | track_event { END }
 *
 * Other slices are written as emit_template.h describes.
 */
#pragma once

#include "bind/track_event/track_event_api.h"

/* The function `past_slice` of the C interface. */
void emit_past_slice(PyObject* template, PyObject* track,
                     const struct st_past_slice* slice);
