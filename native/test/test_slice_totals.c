#include "analysis/slice_totals.h"

#include "check.h"

static void add_track(struct st_storage* s, struct st_cell parent,
                      struct st_cell name) {
  struct st_cell cells[ST_TRACK_COLUMNS] = {
      [ST_TRACK_name] = name,
      [ST_TRACK_parent_id] = parent,
      [ST_TRACK_utid] = st_int(1),
  };
  st_table_add(&s->tables[ST_TRACK_TABLE], cells);
}

static void add_slice(struct st_storage* s, const char* name, int64_t track) {
  struct st_cell cells[ST_SLICE_COLUMNS] = {
      [ST_SLICE_ts] = st_int(0),
      [ST_SLICE_dur] = st_int(5),
      [ST_SLICE_track_id] = st_int(track),
      [ST_SLICE_name] = st_text(st_intern(s, name)),
  };
  st_table_add(&s->tables[ST_SLICE_TABLE], cells);
}

static void slices_of_tasks_are_apart_from_those_of_their_thread(void) {
  struct st_storage s;
  struct st_slice_totals totals = {0};
  st_storage_init(&s);
  struct st_cell none = {0};
  add_track(&s, none, none);
  add_track(&s, st_int(0), none);
  add_track(&s, none, st_text(st_intern(&s, "request (Task-2)")));
  add_slice(&s, "request", 0);
  add_slice(&s, "request", 1);
  add_slice(&s, "request", 2);
  add_slice(&s, "request", 0);
  add_slice(&s, "unknown track", 7);
  CHECK(st_slice_totals(&totals, &s, ST_BY_TASK));
  CHECK_EQ(totals.groups.size, 3);
  CHECK_EQ(totals.groups.data[0].name, 0);
  CHECK_EQ(totals.groups.data[0].count, 2);
  CHECK_EQ(totals.groups.data[1].name, st_intern(&s, "request"));
  CHECK_EQ(totals.groups.data[1].count, 2);
  CHECK_EQ(totals.groups.data[2].name, st_intern(&s, "unknown track"));
  st_slice_totals_free(&totals);
  st_storage_free(&s);
}

static void add_call(struct st_storage* s, const char* name,
                     struct st_cell args) {
  struct st_cell cells[ST_SLICE_COLUMNS] = {
      [ST_SLICE_ts] = st_int(0),
      [ST_SLICE_dur] = st_int(5),
      [ST_SLICE_track_id] = st_int(0),
      [ST_SLICE_name] = st_text(st_intern(s, name)),
      [ST_SLICE_depth] = st_int(0),
      [ST_SLICE_arg_set_id] = args,
  };
  st_table_add(&s->tables[ST_SLICE_TABLE], cells);
}

static void add_arg(struct st_storage* s, int64_t set, const char* key,
                    const char* value) {
  struct st_cell cells[ST_ARGS_COLUMNS] = {
      [ST_ARGS_arg_set_id] = st_int(set),
      [ST_ARGS_key] = st_text(st_intern(s, key)),
      [ST_ARGS_string_value] = st_text(st_intern(s, value)),
  };
  st_table_add(&s->tables[ST_ARGS_TABLE], cells);
}

static void functions_have_the_file_of_their_first_location(void) {
  struct st_storage s;
  struct st_slice_totals totals = {0};
  st_storage_init(&s);
  add_arg(&s, 0, "debug.size", "large");
  add_arg(&s, 1, "debug.size", "small");
  add_arg(&s, 1, "source.file_name", "shop.py");
  add_arg(&s, 3, "source_location.file_name", "stock.py");
  add_call(&s, "sell", st_int(0));
  add_call(&s, "sell", st_int(1));
  add_call(&s, "sell", st_int(3));
  add_call(&s, "count", st_int(3));
  add_call(&s, "sleep", (struct st_cell){0});
  add_call(&s, "size", st_int(0));
  CHECK(st_slice_totals(&totals, &s, ST_BY_FUNCTION));
  CHECK_EQ(totals.groups.size, 4);
  CHECK_EQ(totals.groups.data[0].file, st_intern(&s, "shop.py"));
  CHECK_EQ(totals.groups.data[1].file, st_intern(&s, "stock.py"));
  CHECK_EQ(totals.groups.data[2].file, 0);
  CHECK_EQ(totals.groups.data[3].file, 0);
  st_slice_totals_free(&totals);
  st_storage_free(&s);
}

/* Slices of more than a segment, one after the other; each third one has a CPU
 * time and a slice inside, and every second segment no category. */
static void add_many(struct st_storage* s, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_inside = i % 3 == 1;
    bool has_category = i / ST_SEGMENT_ROWS % 2 == 0;
    struct st_cell cells[ST_SLICE_COLUMNS] = {
        [ST_SLICE_ts] = st_int(10 * (i - is_inside)),
        [ST_SLICE_dur] = st_int(is_inside ? 4 : 10),
        [ST_SLICE_track_id] = st_int(i % 2),
        [ST_SLICE_category] = st_text(has_category ? st_intern(s, "io") : 0),
        [ST_SLICE_name] = st_text(st_intern(s, is_inside ? "read" : "load")),
        [ST_SLICE_parent_id] = is_inside ? st_int(i - 1) : ST_NULL,
        [ST_SLICE_thread_ts] = i % 3 == 0 ? st_int(i) : ST_NULL,
        [ST_SLICE_thread_dur] = i % 3 == 0 ? st_int(2) : ST_NULL,
    };
    st_table_add(&s->tables[ST_SLICE_TABLE], cells);
  }
}

static void totals_are_those_of_all_segments(void) {
  enum { COUNT = 3 * ST_SEGMENT_ROWS, THIRD = ST_SEGMENT_ROWS };
  struct st_storage s;
  struct st_slice_totals by[3] = {0};
  st_storage_init(&s);
  add_many(&s, COUNT);
  CHECK(st_slice_totals(&by[0], &s, ST_BY_CATEGORY));
  CHECK(st_slice_totals(&by[1], &s, ST_BY_TRACK));
  CHECK(st_slice_totals(&by[2], &s, ST_BY_FUNCTION));
  CHECK_EQ(by[0].groups.size, 2);
  CHECK_EQ(by[0].groups.data[0].count, 2 * THIRD);
  CHECK_EQ(by[0].groups.data[1].category, 0);
  CHECK_EQ(by[0].groups.data[1].count, THIRD);
  CHECK_EQ(by[1].groups.size, 2);
  CHECK_EQ(by[1].groups.data[1].count, COUNT / 2);
  CHECK_EQ(by[2].groups.size, 4);
  int64_t self = 0, cpu = 0;
  for (uint32_t i = 0; i < 4; i++) {
    self += by[2].groups.data[i].self;
    cpu += by[2].groups.data[i].cpu;
  }
  CHECK_EQ(self, 20 * THIRD); /* Without what is inside. */
  CHECK_EQ(cpu, 2 * THIRD);
  for (uint32_t i = 0; i < 3; i++)
    st_slice_totals_free(&by[i]);
  st_storage_free(&s);
}

int main(void) {
  jmp_buf place;
  st_memory_catch(&place);
  CHECK_EQ(setjmp(place), 0);
  RUN(totals_are_those_of_all_segments);
  RUN(slices_of_tasks_are_apart_from_those_of_their_thread);
  RUN(functions_have_the_file_of_their_first_location);
  return 0;
}
