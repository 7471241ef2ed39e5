/* Tests of the stack table: numbers of frames and stacks, compared with those
 * of a simple search. */
#include "probes/stack_table.h"

#include <string.h>

#include "check.h"
#include "random.h"

static void instructions_of_one_line_have_one_frame(void) {
  struct st_stack_table* t = st_stack_table_create();
  CHECK_EQ(st_stack_table_known(t, 0x1000, 0x1010), 0);
  CHECK_EQ(st_stack_table_add(t, 0x1000, 0x1010, 0x1000, 5), 1);
  CHECK_EQ(st_stack_table_add(t, 0x1000, 0x1012, 0x1000, 5), 1);
  CHECK_EQ(st_stack_table_add(t, 0x1000, 0x1014, 0x1000, 6), 2);
  CHECK_EQ(st_stack_table_add(t, 0x2000, 0x1010, 0x2000, 5), 3);
  CHECK_EQ(st_stack_table_known(t, 0x1000, 0x1012), 1);
  CHECK_EQ(st_stack_table_frame_count(t), 3);
  CHECK_EQ(st_stack_table_frame(t, 2).function, 0x1000);
  CHECK_EQ(st_stack_table_frame(t, 2).line, 6);
  st_stack_table_destroy(t);
}

static void code_objects_of_one_function_share_frames(void) {
  struct st_stack_table* t = st_stack_table_create();
  CHECK_EQ(st_stack_table_add(t, 1, 0x10, 7, 5), 1);
  CHECK_EQ(st_stack_table_add(t, 2, 0x10, 7, 5), 1);
  CHECK_EQ(st_stack_table_add(t, 3, 0x10, 8, 5), 2);
  CHECK_EQ(st_stack_table_known(t, 2, 0x10), 1);
  st_stack_table_destroy(t);
}

static void cache_of_instructions_starts_anew_when_it_is_full(void) {
  struct st_stack_table* t = st_stack_table_create();
  for (uint32_t i = 0; i < ST_MAX_FRAMES; i++)
    CHECK_EQ(st_stack_table_add(t, i, 0, 7, 5), 1);
  CHECK_EQ(st_stack_table_known(t, 0, 0), 1);
  CHECK_EQ(st_stack_table_add(t, ST_MAX_FRAMES, 0, 7, 5), 1);
  CHECK_EQ(st_stack_table_known(t, 0, 0), 0);
  CHECK_EQ(st_stack_table_known(t, ST_MAX_FRAMES, 0), 1);
  st_stack_table_destroy(t);
}

static void equal_stacks_have_one_number(void) {
  struct st_stack_table* t = st_stack_table_create();
  const uint32_t stacks[][3] = {{1, 2, 3}, {1, 2, 4}, {1, 2, 3}};
  const uint32_t numbers[] = {1, 2, 1};
  for (uint32_t i = 0; i < 3; i++) {
    uint32_t number = st_stack_table_stack(t, stacks[i], 3);
    CHECK_EQ(number, numbers[i]);
    st_stack_table_hit(t, number, i + 1);
  }
  CHECK_EQ(st_stack_table_stack(t, stacks[0], 2), 3);
  CHECK_EQ(st_stack_table_hits(t, 1), 1 + 3);
  CHECK_EQ(st_stack_table_hits(t, 2), 2);
  CHECK_EQ(st_stack_table_hits(t, 3), 0);
  uint32_t depth;
  CHECK(!memcmp(st_stack_table_frames(t, 2, &depth), stacks[1],
                sizeof stacks[1]));
  CHECK_EQ(depth, 3);
  st_stack_table_destroy(t);
}

static void cleared_table_starts_at_1(void) {
  struct st_stack_table* t = st_stack_table_create();
  st_stack_table_add(t, 0x1000, 0x1010, 0x1000, 5);
  st_stack_table_stack(t, (const uint32_t[]){1}, 1);
  st_stack_table_clear(t);
  CHECK_EQ(st_stack_table_frame_count(t), 0);
  CHECK_EQ(st_stack_table_stack_count(t), 0);
  CHECK_EQ(st_stack_table_known(t, 0x1000, 0x1010), 0);
  CHECK_EQ(st_stack_table_add(t, 0x3000, 0x3010, 0x3000, 7), 1);
  st_stack_table_destroy(t);
}

static void full_table_refuses_new_frames_and_stacks(void) {
  struct st_stack_table* t = st_stack_table_create();
  for (uint32_t i = 1; i <= ST_MAX_FRAMES; i++)
    CHECK_EQ(st_stack_table_add(t, 0x1000, 2 * i, 0x1000, (int32_t)i), i);
  CHECK_EQ(st_stack_table_add(t, 0x1000, 1, 0x1000, ST_MAX_FRAMES + 1), 0);
  CHECK_EQ(st_stack_table_known(t, 0x1000, 2 * 77), 77);
  for (uint32_t i = 1; i <= ST_MAX_STACKS; i++)
    CHECK_EQ(st_stack_table_stack(t, (const uint32_t[]){i, 1}, 2), i);
  CHECK_EQ(st_stack_table_stack(t, (const uint32_t[]){1, 2, 3}, 3), 0);
  CHECK_EQ(st_stack_table_stack(t, (const uint32_t[]){77, 1}, 2), 77);
  st_stack_table_destroy(t);
}

enum { MODEL_STACKS = 2000, MAX_DEPTH = 6 };

static void numbers_of_stacks_match_a_simple_search(void) {
  static uint32_t model[MODEL_STACKS][MAX_DEPTH];
  static uint32_t depths[MODEL_STACKS];
  struct st_stack_table* t = st_stack_table_create();
  uint64_t random = 3;
  uint32_t count = 0;
  for (int i = 0; i < MODEL_STACKS; i++) {
    uint32_t frames[MAX_DEPTH] = {0}, found = 0;
    uint32_t depth = 1 + (uint32_t)random_below(&random, MAX_DEPTH);
    for (uint32_t j = 0; j < depth; j++)
      frames[j] = 1 + (uint32_t)random_below(&random, 4);
    while (found < count && (depths[found] != depth ||
                             memcmp(model[found], frames, sizeof frames)))
      found++;
    if (found == count) {
      memcpy(model[count], frames, sizeof frames);
      depths[count++] = depth;
    }
    CHECK_EQ(st_stack_table_stack(t, frames, depth), found + 1);
  }
  st_stack_table_destroy(t);
}

int main(void) {
  RUN(instructions_of_one_line_have_one_frame);
  RUN(code_objects_of_one_function_share_frames);
  RUN(cache_of_instructions_starts_anew_when_it_is_full);
  RUN(equal_stacks_have_one_number);
  RUN(cleared_table_starts_at_1);
  RUN(full_table_refuses_new_frames_and_stacks);
  RUN(numbers_of_stacks_match_a_simple_search);
  return 0;
}
