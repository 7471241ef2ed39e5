/* The Python type Arbiter: a producer's shared memory, and the sink of its
 * chunks.
 *
 * The sink is a ProducerEndpointCore if the service is in this process, else a
 * SendQueue.
 *
 * Life cycle: an Arbiter keeps a reference to its sink, and a TraceWriter keeps
 * one to its Arbiter.  After a fork the child's arbiter is disabled.
 *
 * Threads: waiting in a stalling policy releases the GIL.
 */
#pragma once

#include "bind/common/python.h"
#include "core/arbiter.h"

/* Returns the core struct of an Arbiter.  For other objects returns NULL with
 * TypeError set. */
struct st_arbiter* st_bind_arbiter(PyObject* object);
