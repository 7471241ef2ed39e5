/* st_emit: writes an event to each session that records it.
 *
 *   Category.instant, slice, ...   category_events.h   parses the arguments
 *        |
 *   st_emit                        emit.h              converts, then writes
 *        |         \
 *   thread_state.h  annotations.h                      sequences; arguments
 *        |
 *   core/track_event.h                                 bytes
 *
 * All arguments are converted to native values before a packet opens, because a
 * conversion may run Python code (a repr), which may record further events.
 * Writing a packet runs no Python code.
 *
 * Threads: called with the GIL; a stalling policy releases it while it waits.
 */
#pragma once

#include "bind/track_event/event_request.h"

/* Writes the event to the slots in `mask`.  Returns the slots to which the
 * event was written.  Never raises: failed conversions are counted.  A pending
 * exception stays set. */
uint32_t st_emit(const struct event_request* request, uint32_t mask);

/* Writes the END of a slice that an exception of the type `type` has left.  The
 * request holds the track of the slice. */
void st_emit_raised_end(struct event_request* request, uint32_t mask,
                        PyObject* type);
