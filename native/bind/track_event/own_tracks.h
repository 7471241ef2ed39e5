/* thread_track() and process_track(): the tracks of the calling thread and of
 * this process, as Track objects.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_OWN_TRACKS_H_
#define STRETTO_BIND_TRACK_EVENT_OWN_TRACKS_H_

#include "bind/common/python.h"

/* Adds the functions to the module.  -1: an exception is set. */
int st_bind_add_own_tracks(PyObject* module);

#endif /* STRETTO_BIND_TRACK_EVENT_OWN_TRACKS_H_ */
