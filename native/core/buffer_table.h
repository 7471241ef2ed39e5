/* Buffer table: the trace buffers of one service, by global id.
 *
 * Shared by all producer endpoints of the service.  Entries are counted: a
 * session may remove a buffer while a writer copies a chunk into it; the
 * buffer then dies with its last user, and its id stays in use until then.
 *
 *   create -> add ... acquire/release ... remove -> (last release) -> gone
 *
 * Lock: one leaf mutex for lookup and counting; a buffer is destroyed outside
 * of it.  Limits: ids 1 to 65535; the table takes address space for all, and
 * memory only for pages of ids that were used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace_buffer.h"

struct st_buffer_table;

struct st_buffer_table* st_buffer_table_create(void);
/* The caller must have destroyed all endpoints. */
void st_buffer_table_destroy(struct st_buffer_table* t);

/* Takes ownership of buffer.  False: id 0 or in use. */
bool st_buffer_table_add(struct st_buffer_table* t, uint16_t id,
                         struct st_trace_buffer* buffer);
void st_buffer_table_remove(struct st_buffer_table* t, uint16_t id);

/* NULL if there is none; pair with release. */
struct st_trace_buffer* st_buffer_table_acquire(struct st_buffer_table* t,
                                                uint16_t id);
void st_buffer_table_release(struct st_buffer_table* t, uint16_t id);
