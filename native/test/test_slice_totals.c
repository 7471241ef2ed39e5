#include "analysis/slice_totals.h"

#include <stdlib.h>

#include "check.h"

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

/* Adds slices of one function, one after the other. */
static void add_slices(struct st_storage* s, const int64_t* durations,
                       uint32_t count) {
  int64_t ts = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct st_cell cells[ST_SLICE_COLUMNS] = {
        [ST_SLICE_ts] = st_int(ts),
        [ST_SLICE_dur] = st_int(durations[i]),
        [ST_SLICE_track_id] = st_int(0),
        [ST_SLICE_name] = st_text(st_intern(s, "f")),
        [ST_SLICE_depth] = st_int(0),
    };
    st_table_add(&s->tables[ST_SLICE_TABLE], cells);
    ts += durations[i];
  }
}

/* The value between the two sorted values around a place. */
static int64_t model(const int64_t* sorted, uint32_t count, uint32_t percent) {
  uint64_t place = (uint64_t)(count - 1) * percent;
  int64_t low = sorted[place / 100], high = sorted[(place + 99) / 100];
  return low + ((high - low) * (int64_t)(place % 100) + 50) / 100;
}

/* Durations up to 2^bits, the first of them 2^bits. */
static void check_percentiles(uint32_t count, uint32_t bits) {
  struct st_storage s;
  struct st_slice_totals totals = {0};
  int64_t* durations = malloc(count * sizeof *durations);
  uint64_t state = 12345;
  for (uint32_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    durations[i] = i ? (int64_t)(state >> (64 - bits)) : (int64_t)1 << bits;
  }
  st_storage_init(&s);
  add_slices(&s, durations, count);
  CHECK(st_slice_totals(&totals, &s, ST_BY_FUNCTION));
  qsort(durations, count, sizeof *durations, compare);
  CHECK_EQ(totals.groups.size, 1);
  const struct st_slice_total* group = totals.groups.data;
  CHECK_EQ(group->count, count);
  CHECK_EQ(group->p50, model(durations, count, 50));
  CHECK_EQ(group->p90, model(durations, count, 90));
  CHECK_EQ(group->p99, model(durations, count, 99));
  CHECK_EQ(group->max, durations[count - 1]);
  st_slice_totals_free(&totals);
  st_storage_free(&s);
  free(durations);
}

static void percentiles_are_between_the_sorted_durations(void) {
  static const uint32_t kCounts[] = {1, 2, 100, 2047, 2048, 40000};
  static const uint32_t kBits[] = {1, 7, 8, 20, 40};
  for (uint32_t i = 0; i < 6; i++) {
    for (uint32_t k = 0; k < 5; k++)
      check_percentiles(kCounts[i], kBits[k]);
  }
}

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

int main(void) {
  jmp_buf place;
  st_memory_catch(&place);
  CHECK_EQ(setjmp(place), 0);
  RUN(percentiles_are_between_the_sorted_durations);
  RUN(slices_of_tasks_are_apart_from_those_of_their_thread);
  RUN(functions_have_the_file_of_their_first_location);
  return 0;
}
