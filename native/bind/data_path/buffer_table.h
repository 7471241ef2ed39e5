/* The Python type BufferTable: the trace buffers of one service.
 *
 * Life cycle: the object owns its core table; whoever holds a reference to the
 * object may use the struct.
 *
 * Threads: the core table has a mutex of its own for writing.  Reading is
 * guarded by the reader lock below.
 */
#pragma once

#include "bind/common/python.h"
#include "core/buffer_table.h"

/* The core struct behind a BufferTable; NULL with TypeError for other types. */
struct st_buffer_table* st_bind_buffer_table(PyObject* object);

/* A table has one reader at a time.  Lock is called with the GIL and releases
 * it only if it has to wait: getting the GIL back from a busy thread costs the
 * switch interval, 5 ms.  No thread waits for this lock while it holds the GIL. */
void st_bind_table_lock_reader(PyObject* table);
void st_bind_table_unlock_reader(PyObject* table);
