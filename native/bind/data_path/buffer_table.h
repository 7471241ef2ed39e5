/* The Python type BufferTable: the trace buffers of one service.
 *
 * Life cycle: the object owns its core table; the struct is valid while a
 * reference to the object is held.
 *
 * Threads: the core table has a mutex of its own for writing.  The reader lock
 * below guards reading.
 */
#pragma once

#include "bind/common/python.h"
#include "core/buffer_table.h"

/* Returns the core struct of a BufferTable.  For other objects returns NULL
 * with TypeError set. */
struct st_buffer_table* st_bind_buffer_table(PyObject* object);

/* Takes the reader lock of the table.  Called with the GIL, which is released
 * only if the lock is not free: getting the GIL back from a busy thread costs
 * the switch interval, 5 ms.  No thread waits for this lock while it holds the
 * GIL. */
void st_bind_table_lock_reader(PyObject* table);
void st_bind_table_unlock_reader(PyObject* table);

/* Finds the buffer with the id that Python has passed, and acquires it.
 * Returns NULL with an exception set on failure.  The caller releases the
 * buffer. */
struct st_trace_buffer* st_bind_acquire_buffer(PyObject* table,
                                               PyObject* buffer_id,
                                               uint16_t* id);
void st_bind_release_buffer(PyObject* table, uint16_t id);
