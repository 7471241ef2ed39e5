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
