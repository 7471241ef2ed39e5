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
  CHECK_EQ(group->p50, durations[(count * 50 + 99) / 100 - 1]);
  CHECK_EQ(group->p90, durations[(count * 90 + 99) / 100 - 1]);
  CHECK_EQ(group->p99, durations[(count * 99 + 99) / 100 - 1]);
  CHECK_EQ(group->max, durations[count - 1]);
  st_slice_totals_free(&totals);
  st_storage_free(&s);
  free(durations);
}

static void percentiles_are_those_of_the_sorted_durations(void) {
  static const uint32_t kCounts[] = {1, 2, 100, 2047, 2048, 40000};
  static const uint32_t kBits[] = {1, 7, 8, 20, 40};
  for (uint32_t i = 0; i < 6; i++) {
    for (uint32_t k = 0; k < 5; k++)
      check_percentiles(kCounts[i], kBits[k]);
  }
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
  RUN(percentiles_are_those_of_the_sorted_durations);
  RUN(functions_have_the_file_of_their_first_location);
  return 0;
}
