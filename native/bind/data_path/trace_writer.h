/* The Python type TraceWriter: writes the packets of one sequence.
 *
 * One thread owns a writer.  A packet from another thread, while the owner
 * waits without the GIL, is dropped and counted.
 */
#pragma once

#include "bind/common/python.h"
#include "core/trace_writer.h"

/* Returns the core struct of a TraceWriter.  For other objects returns NULL
 * with TypeError set. */
struct st_trace_writer* st_bind_trace_writer(PyObject* object);
bool st_bind_is_trace_writer(PyObject* object);

/* Appends a packet in pieces; may stall.  The packet is counted as dropped if the
 * writer is closed or busy. */
bool st_bind_trace_writer_append(PyObject* object,
                                 const struct st_iovec* pieces, size_t count);

/* Begin or end a packet whose size is not known in advance.  Between the two
 * calls the writer is busy and drops other packets.  Begin returns NULL,
 * without an exception, if the writer is closed or already busy.  Both calls
 * may stall. */
struct st_message* st_bind_trace_writer_begin(PyObject* object);
void st_bind_trace_writer_end(PyObject* object);
