#include "analysis/slice_selection.h"

#include <string.h>

#include "check.h"

static void add_slice(struct st_storage* s, const char* name,
                      struct st_cell args) {
  struct st_cell cells[ST_SLICE_COLUMNS] = {
      [ST_SLICE_name] = st_text(st_intern(s, name)),
      [ST_SLICE_ts] = st_int(5),
      [ST_SLICE_arg_set_id] = args,
  };
  st_table_add(&s->tables[ST_SLICE_TABLE], cells);
}

static void add_arg(struct st_storage* s, int64_t set, const char* key) {
  struct st_cell cells[ST_ARGS_COLUMNS] = {
      [ST_ARGS_arg_set_id] = st_int(set),
      [ST_ARGS_key] = st_text(st_intern(s, key)),
      [ST_ARGS_int_value] = st_int(7),
  };
  st_table_add(&s->tables[ST_ARGS_TABLE], cells);
}

/* Argument sets 0 (line, role), 2 (line) and 3 (role) of five slices. */
static void fill(struct st_storage* s, struct st_flows* f) {
  st_storage_init(s);
  *f = (struct st_flows){.storage = s};
  add_arg(s, 0, "debug.line");
  add_arg(s, 0, "debug.role");
  add_arg(s, 2, "debug.line");
  add_arg(s, 3, "debug.role");
  add_slice(s, "call", st_int(0));
  add_slice(s, "call", ST_NULL);
  add_slice(s, "reply", st_int(3));
  add_slice(s, "reply", st_int(2));
  add_slice(s, "reply", st_int(0));
}

static void drop(struct st_storage* s, struct st_flows* f,
                 struct st_slice_selection* found) {
  st_slice_selection_free(found);
  st_flows_free(f);
  st_storage_free(s);
}

static void choose(struct st_slice_selection* found, const struct st_storage* s,
                   const struct st_flows* f, enum st_selection by,
                   const char* text) {
  CHECK(st_select_slices(found, s, f, by, text, strlen(text)));
}

static void check_slice(const struct st_slice_selection* found, uint32_t i,
                        uint32_t row, uint32_t first, uint32_t count) {
  const struct st_selected_slice* slice = &found->slices.data[i];
  CHECK(i < found->slices.size);
  CHECK_EQ(slice->row, row);
  CHECK_EQ(slice->argument_count, count);
  if (count)
    CHECK_EQ(slice->first_argument, first);
}

static void slices_with_a_name_have_their_arguments(void) {
  struct st_storage s;
  struct st_flows f;
  struct st_slice_selection found = {0};
  fill(&s, &f);
  choose(&found, &s, &f, ST_WITH_NAME, "call");
  CHECK_EQ(found.slices.size, 2);
  check_slice(&found, 0, 0, 0, 2);
  check_slice(&found, 1, 1, 0, 0);
  drop(&s, &f, &found);
}

static void slices_with_a_key_are_those_of_all_its_argument_sets(void) {
  struct st_storage s;
  struct st_flows f;
  struct st_slice_selection found = {0};
  fill(&s, &f);
  choose(&found, &s, &f, ST_WITH_ARGUMENT, "debug.role");
  CHECK_EQ(found.slices.size, 3);
  check_slice(&found, 0, 0, 0, 2);
  check_slice(&found, 1, 2, 3, 1);
  check_slice(&found, 2, 4, 0, 2);
  drop(&s, &f, &found);
}

static void unknown_texts_select_nothing(void) {
  struct st_storage s;
  struct st_flows f;
  struct st_slice_selection found = {0};
  fill(&s, &f);
  choose(&found, &s, &f, ST_WITH_ARGUMENT, "debug.number");
  choose(&found, &s, &f, ST_WITH_NAME, "");
  CHECK_EQ(found.slices.size, 0);
  drop(&s, &f, &found);
}

static void first_flow_of_a_slice_needs_no_second_slice(void) {
  struct st_storage s;
  struct st_flows f;
  struct st_slice_selection found = {0};
  fill(&s, &f);
  st_flow_end(&f, 70, 1);
  st_flow_continue(&f, 50, 0);
  st_flow_continue(&f, 60, 0);
  choose(&found, &s, &f, ST_WITH_NAME, "call");
  CHECK_EQ(s.tables[ST_FLOW_TABLE].rows, 0);
  CHECK_EQ(found.slices.data[0].flow, 50);
  CHECK_EQ(found.slices.data[1].flow, 70);
  drop(&s, &f, &found);
}

int main(void) {
  jmp_buf place;
  st_memory_catch(&place);
  CHECK_EQ(setjmp(place), 0);
  RUN(slices_with_a_name_have_their_arguments);
  RUN(slices_with_a_key_are_those_of_all_its_argument_sets);
  RUN(unknown_texts_select_nothing);
  RUN(first_flow_of_a_slice_needs_no_second_slice);
  return 0;
}
