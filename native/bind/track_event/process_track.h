/* The track of this process: the parent of all other tracks.
 *
 * The client sets it at start, and again in the child of a fork.  The generation
 * then grows, and tracks bring their uuids up to date when they are used next
 * (track.h).  Written with the GIL.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_PROCESS_TRACK_H_
#define STRETTO_BIND_TRACK_EVENT_PROCESS_TRACK_H_

#include "bind/common/python.h"
#include "core/track_event.h"

extern struct st_track st_process_track;
extern uint32_t st_process_generation;

/* Adds set_process() to the module.  -1: an exception is set. */
int st_bind_add_process_track(PyObject* module);

#endif /* STRETTO_BIND_TRACK_EVENT_PROCESS_TRACK_H_ */
