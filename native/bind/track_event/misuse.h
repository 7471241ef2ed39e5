/* Wrong use of event calls: a track that is not a Track, a timestamp of 1.5.
 *
 * The arguments of a disabled category are not looked at.  If a wrong argument
 * raised once a session records, recording would change the program: a mistake
 * that had no effect for years would end it.  So it is counted, the wrong part
 * is left out, and the event gets an annotation that names it.  Under
 * `python -X dev` the call raises, and the message says what to do.
 */
#pragma once

#include "bind/track_event/event_request.h"

extern const char* const st_part_names[EVENT_PARTS];

/* Counts wrong use of an event call, and leaves that part out of the event.
 * False: it has to be raised instead, and the exception is set. */
__attribute__((cold)) bool forgive(struct event_request* request,
                                   enum event_part part, PyObject* error,
                                   const char* format, ...);
