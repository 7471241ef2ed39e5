/* The capsule behind track_event_api.h: slices of calls for other extensions.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_TRACK_EVENT_CAPSULE_H_
#define STRETTO_BIND_TRACK_EVENT_TRACK_EVENT_CAPSULE_H_

#include "bind/common/python.h"

/* Adds the capsule to the module.  -1: an exception is set. */
int st_bind_add_track_event_capsule(PyObject* module);

#endif /* STRETTO_BIND_TRACK_EVENT_TRACK_EVENT_CAPSULE_H_ */
