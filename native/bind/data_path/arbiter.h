/* The Python type Arbiter: a producer's shared memory and the sink of its chunks.
 *
 * Life cycle: an Arbiter keeps a reference to its sink, a ProducerEndpointCore
 * in process or a SendQueue over a socket; a TraceWriter keeps one to its
 * Arbiter.  After a fork the child's arbiter is disabled.
 *
 * Threads: waiting in a stalling policy releases the GIL.
 */
#ifndef STRETTO_BIND_DATA_PATH_ARBITER_H_
#define STRETTO_BIND_DATA_PATH_ARBITER_H_

#include "bind/common/python.h"
#include "core/arbiter.h"

/* The core struct behind an Arbiter; NULL with TypeError for other types. */
struct st_arbiter* st_bind_arbiter(PyObject* object);

/* Adds the type or functions to the module.  -1: an exception is set. */
int st_bind_add_arbiter(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_ARBITER_H_ */
