/* Wrong use of event calls: a track that is not a Track, a timestamp of 1.5.
 *
 * While a category is disabled, its arguments are not checked.  If a wrong
 * argument raised an exception as soon as a session records, starting a
 * recording could end the program.  So a wrong argument is counted and left out
 * of the event, and an annotation of the event names it.  Under `python -X dev`
 * the call raises, and the message says what to do.
 */
#pragma once

#include "bind/track_event/event_request.h"

extern const char* const st_part_names[EVENT_PARTS];

/* Counts the misuse of an event call, and marks `part` as left out of the
 * event.  Returns false with an exception set if misuse raises (-X dev). */
__attribute__((cold)) bool report_misuse(struct event_request* request,
                                         enum event_part part, PyObject* error,
                                         const char* format, ...);
