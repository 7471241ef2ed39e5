/* Functions that start, stop and flush the slots of instances.h, and count what
 * was written.
 *
 * The client (stretto.client.track_event) decides what a slot records, by the
 * bits of the categories; these functions only start and stop slots.  All run
 * with the GIL.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_INSTANCE_FUNCTIONS_H_
#define STRETTO_BIND_TRACK_EVENT_INSTANCE_FUNCTIONS_H_

#include "bind/common/python.h"

/* Adds the functions and MAX_INSTANCES to the module.  -1: an exception is set. */
int st_bind_add_instance_functions(PyObject* module);

#endif /* STRETTO_BIND_TRACK_EVENT_INSTANCE_FUNCTIONS_H_ */
