/* Tests of buffer tables: buffers exist while they are in use. */
#include "core/buffer_table.h"

#include "check.h"
#include "fake_chunk.h"
#include "random.h"

static void invalid_and_used_ids_are_refused(void) {
  struct st_buffer_table* t = st_buffer_table_create();
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_RING, -1);
  CHECK(!st_buffer_table_add(t, 0, b));
  CHECK(st_buffer_table_add(t, 3, b));
  CHECK(!st_buffer_table_add(t, 3, b));
  CHECK(!st_buffer_table_acquire(t, 4));
  st_buffer_table_remove(t, 9);
  st_buffer_table_destroy(t);
}

static void removed_buffer_exists_until_its_last_release(void) {
  struct st_buffer_table* t = st_buffer_table_create();
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_RING, -1);
  CHECK(st_buffer_table_add(t, 3, b));
  CHECK(st_buffer_table_acquire(t, 3) == b);
  st_buffer_table_remove(t, 3);
  CHECK(!st_buffer_table_acquire(t, 3));
  CHECK(commit_one(b, 1, 0, 10, 'a')); /* The removed buffer is still in use. */
  struct st_trace_buffer* next = st_trace_buffer_create(4096, ST_RING, -1);
  /* The id of the removed buffer is not free yet. */
  CHECK(!st_buffer_table_add(t, 3, next));
  st_buffer_table_release(t, 3);
  CHECK(st_buffer_table_add(t, 3, next));
  st_buffer_table_destroy(t);
}

/* Compares the table with a model: its buffers, the number of users of each,
 * and which buffers were removed. */
static void random_operations_match_a_model(void) {
  enum { IDS = 500, OPERATIONS = 100000 };
  static struct {
    struct st_trace_buffer* buffer;
    uint32_t users;
    bool removed;
  } model[IDS];
  struct st_buffer_table* t = st_buffer_table_create();
  uint64_t seed = 2;
  for (int n = 0; n < OPERATIONS; n++) {
    uint32_t i = (uint32_t)random_below(&seed, IDS);
    uint16_t id = (uint16_t)(65535 - i * 131);
    uint64_t choice = random_below(&seed, 4);
    if (choice == 0 && !model[i].buffer) {
      model[i].buffer = st_trace_buffer_create(4096, ST_RING, -1);
      CHECK(st_buffer_table_add(t, id, model[i].buffer));
    } else if (choice == 1) {
      st_buffer_table_remove(t, id);
      model[i].removed = model[i].buffer != NULL;
    } else if (choice == 2 && model[i].users < 3) {
      struct st_trace_buffer* b = st_buffer_table_acquire(t, id);
      CHECK(b == (model[i].removed ? NULL : model[i].buffer));
      model[i].users += b != NULL;
    } else if (choice == 3 && model[i].users) {
      st_buffer_table_release(t, id);
      model[i].users--;
    }
    if (model[i].removed && !model[i].users) {
      model[i].buffer = NULL;
      model[i].removed = false;
    }
  }
  st_buffer_table_destroy(t);
}

int main(void) {
  RUN(invalid_and_used_ids_are_refused);
  RUN(removed_buffer_exists_until_its_last_release);
  RUN(random_operations_match_a_model);
  return 0;
}
