/* The Python type ProducerEndpointCore: the service's side of one producer.
 *
 * Life cycle: it keeps a reference to its BufferTable, and owns the memory that
 * it maps.  Commits are decoded and copied without the GIL, under the
 * endpoint's mutex.
 */
#pragma once

#include "bind/common/python.h"
#include "core/producer_endpoint.h"

/* Returns the core struct of a ProducerEndpointCore.  For other objects returns
 * NULL with TypeError set. */
struct st_producer_endpoint* st_bind_producer_endpoint(PyObject* object);

/* Maps private memory of `size` bytes, in pages of `page_size` bytes, for a
 * producer endpoint.  The endpoint unmaps the memory when it is freed.  Returns
 * NULL with an exception set on failure. */
const struct st_shm* st_bind_endpoint_make_memory(PyObject* endpoint,
                                                  size_t size,
                                                  size_t page_size);
