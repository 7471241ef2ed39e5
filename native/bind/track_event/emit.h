/* st_emit: writes one event to each session that records it.
 *
 *   Category.instant, slice, ...   category_events.h   parses the arguments
 *        |
 *   st_emit                        emit.h              converts, then writes
 *        |         \
 *   thread_state.h  annotations.h                      sequences; arguments
 *        |
 *   core/track_event.h                                 bytes
 *
 * All arguments are converted to native values before a packet opens: that may
 * run Python (a repr), and with it further events.  Writing runs no Python.
 *
 * Threads: called with the GIL; a stalling policy releases it while it waits.
 */
#pragma once

#include "bind/track_event/event_request.h"

/* Writes the event to the slots in `mask`.  Returns the slots that got it.
 * Never raises: what cannot be converted is counted.  A pending exception
 * stays. */
uint32_t st_emit(const struct event_request* request, uint32_t mask);

/* Events that the calling thread is recording, one within the other.  Above 0:
 * Python code that runs now was called by one of them. */
extern _Thread_local unsigned st_events_underway;
