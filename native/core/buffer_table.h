/* Buffer table: the trace buffers of one service, by global id.
 *
 * Shared by all producer endpoints of the service.  Entries have a reference
 * count: a session may remove a buffer while a writer copies a chunk into it.
 * In that case the last release destroys the buffer, and its id becomes free.
 *
 *   create -> add ... acquire/release ... remove -> (last release) -> gone
 *
 * Lock: one leaf mutex for lookup and counting; a buffer is destroyed outside
 * of it.  Limits: ids 1 to 65535; the table reserves address space for all of
 * them, and uses memory only for pages of used ids.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace_buffer.h"

struct st_buffer_table;

struct st_buffer_table* st_buffer_table_create(void);
/* Destroys the table.  The caller has to destroy all producer endpoints
 * before. */
void st_buffer_table_destroy(struct st_buffer_table* t);

/* Adds a buffer to the table, which then owns the buffer.  Returns false if the
 * id is 0 or in use. */
bool st_buffer_table_add(struct st_buffer_table* t, uint16_t id,
                         struct st_trace_buffer* buffer);
void st_buffer_table_remove(struct st_buffer_table* t, uint16_t id);

/* Returns the buffer with this id, or NULL if there is none.  The caller must
 * call st_buffer_table_release for the buffer later. */
struct st_trace_buffer* st_buffer_table_acquire(struct st_buffer_table* t,
                                                uint16_t id);
void st_buffer_table_release(struct st_buffer_table* t, uint16_t id);
