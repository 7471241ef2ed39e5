/* Buffers by id: they live while somebody uses them. */
#include "core/buffer_table.h"

#include "check.h"
#include "fake_chunk.h"

static void ids_are_checked(void) {
  struct st_buffer_table* t = st_buffer_table_create();
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_RING, -1);
  CHECK(!st_buffer_table_add(t, 0, b));
  CHECK(st_buffer_table_add(t, 3, b));
  CHECK(!st_buffer_table_add(t, 3, b));
  CHECK(!st_buffer_table_acquire(t, 4));
  st_buffer_table_remove(t, 9);
  st_buffer_table_destroy(t);
}

static void buffers_live_while_in_use(void) {
  struct st_buffer_table* t = st_buffer_table_create();
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_RING, -1);
  CHECK(st_buffer_table_add(t, 3, b));
  CHECK(st_buffer_table_acquire(t, 3) == b);
  st_buffer_table_remove(t, 3);
  CHECK(!st_buffer_table_acquire(t, 3));
  CHECK(commit_one(b, 1, 0, 10, 'a')); /* still alive */
  struct st_trace_buffer* next = st_trace_buffer_create(4096, ST_RING, -1);
  CHECK(!st_buffer_table_add(t, 3, next)); /* not yet */
  st_buffer_table_release(t, 3);
  CHECK(st_buffer_table_add(t, 3, next));
  st_buffer_table_destroy(t);
}

int main(void) {
  RUN(ids_are_checked);
  RUN(buffers_live_while_in_use);
  return 0;
}
