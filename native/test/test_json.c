#include <stdlib.h>
#include <string.h>

#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"

static struct st_importer* import(const char* text, size_t step) {
  struct st_importer* m = st_importer_new();
  size_t size = strlen(text);
  for (size_t at = 0; at < size; at += step) {
    size_t n = step < size - at ? step : size - at;
    CHECK(st_importer_feed(m, text + at, n));
  }
  CHECK(st_importer_finish(m));
  return m;
}

static const char kTrace[] =
    "{\"other\": {\"a\": [\"}]\\\"\", 1]}, \"traceEvents\": [\n"
    "{\"ph\": \"X\", \"ts\": 1.5, \"dur\": 2, \"pid\": 1, \"tid\": 2, "
    "\"name\": \"a\\u00e9\\ud83d\\ude00\\n\", \"args\": {\"k\": [1, {\"x\": "
    "\"y\"}]}},\n"
    "{\"ph\": \"B\", \"ts\": 10, \"pid\": 1, \"tid\": 2, \"name\": \"b\"},"
    "{\"ph\": \"E\", \"ts\": 12, \"pid\": 1, \"tid\": 2},], \"z\": 1}";

static void check_trace(const struct st_importer* m) {
  CHECK(m->json.is_used && !m->is_cut_off);
  CHECK_EQ(m->counts.truncated_bytes, 0);
  CHECK_EQ(m->json.invalid, 0);
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 2);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_ts), 1500);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_dur), 2000);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_dur), 2000);
  CHECK(is_text(m, ST_SLICE_TABLE, 0, ST_SLICE_name,
                "a\xc3\xa9\xf0\x9f\x98\x80\n"));
  /* The first two rows are the dimension of the track, and k[0]. */
  CHECK(is_text(m, ST_ARGS_TABLE, 2, ST_ARGS_key, "args.k[1].x"));
  CHECK(is_text(m, ST_ARGS_TABLE, 2, ST_ARGS_flat_key, "args.k.x"));
}

static void size_of_pieces_does_not_change_the_tables(void) {
  /* JSON is detected by the first two bytes, so a piece has at least two. */
  for (size_t step = 2; step <= sizeof kTrace; step++) {
    struct st_importer* m = import(kTrace, step);
    check_trace(m);
    st_importer_free(m);
  }
}

static void cut_trace_is_read_up_to_its_end(void) {
  for (size_t size = 2; size < sizeof kTrace - 1; size++) {
    char cut[sizeof kTrace] = {0};
    memcpy(cut, kTrace, size);
    struct st_importer* m = import(cut, size);
    CHECK(m->is_cut_off);
    CHECK_EQ(m->json.invalid, 0);
    CHECK(m->storage.tables[ST_SLICE_TABLE].rows <= 2);
    st_importer_free(m);
  }
}

static void malformed_events_are_counted(void) {
  static const char kMalformed[] =
      "[{\"ph\": \"B\"}, {\"ph\": \"B\", \"ts\": \"x\"}, {1: 2}, {\"ph\" 1}, "
      "{\"ph\": \"B\", \"ts\": 1e999}, {\"ts\": 5}, garbage {\"ph\": nul}]";
  struct st_importer* m = import(kMalformed, sizeof kMalformed);
  CHECK_EQ(m->json.invalid, 7);
  CHECK_EQ(m->counts.truncated_bytes, 7);
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 0);
  st_importer_free(m);
}

static void phases_that_are_not_imported_are_counted(void) {
  static const char kPhases[] =
      "[{\"ph\": \"S\", \"ts\": 1, \"id\": 1}, {\"ph\": \"F\", \"ts\": 2, "
      "\"id\": 1},"
      "{\"ph\": \"?\", \"ts\": 3}, {\"ph\": \"P\", \"ts\": 4}, {\"ph\": \"N\", "
      "\"ts\": 5}]";
  struct st_importer* m = import(kPhases, sizeof kPhases);
  CHECK_EQ(m->json.lost, 3);
  CHECK_EQ(m->counts.unread_events, 2);
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 0);
  st_importer_free(m);
}

static void lists_and_objects_without_events_are_json(void) {
  static const char* const kEmpty[] = {"[]", " [ ] ", "{}", "{ \n}"};
  for (size_t i = 0; i < sizeof kEmpty / sizeof *kEmpty; i++) {
    struct st_importer* m = import(kEmpty[i], strlen(kEmpty[i]));
    CHECK_EQ(m->json.is_used, true);
    CHECK_EQ(m->counts.truncated_bytes, 0);
    st_importer_free(m);
  }
}

static void deeply_nested_arguments_are_cut_off(void) {
  static char text[200000];
  strcpy(text, "[{\"ph\":\"B\",\"ts\":1,\"args\":{\"a\":");
  size_t size = strlen(text);
  memset(text + size, '[', 90000);
  memset(text + size + 90000, ']', 90000);
  strcpy(text + size + 180000, "}}]");
  struct st_importer* m = import(text, sizeof text);
  CHECK_EQ(m->json.invalid, 0);
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 1);
  st_importer_free(m);
}

static void each_kind_of_value_is_read(void) {
  static const struct {
    const char* text;
    enum st_json_kind kind;
    double number;
  } kValues[] = {
      {"-12", ST_JSON_INT, -12},
      {"1.5", ST_JSON_REAL, 1.5},
      {"1e3", ST_JSON_REAL, 1000},
      {"true", ST_JSON_BOOL, 1},
      {"null", ST_JSON_NULL, 0},
      {"\"a\\\"\"", ST_JSON_TEXT, 0},
      {"[1, 2]", ST_JSON_ARRAY, 0},
      {"{}", ST_JSON_OBJECT, 0},
      {"nul", ST_JSON_NONE, 0},
      {"-", ST_JSON_NONE, 0},
      {"1-2", ST_JSON_NONE, 0},
      {"\"a", ST_JSON_NONE, 0},
      {"[1", ST_JSON_NONE, 0},
      {"", ST_JSON_NONE, 0},
      {"9223372036854775807", ST_JSON_INT, 9223372036854775807.0},
      {"9223372036854775808", ST_JSON_REAL, 9223372036854775808.0},
  };
  for (size_t i = 0; i < sizeof kValues / sizeof *kValues; i++) {
    const char* at = kValues[i].text;
    struct st_json value = st_json_read(&at, at + strlen(at));
    CHECK_EQ(value.kind, kValues[i].kind);
    if (value.kind == ST_JSON_REAL)
      CHECK(value.f == kValues[i].number);
    if (value.kind == ST_JSON_INT || value.kind == ST_JSON_BOOL)
      CHECK((double)value.i == kValues[i].number);
  }
}

int main(void) {
  RUN(size_of_pieces_does_not_change_the_tables);
  RUN(cut_trace_is_read_up_to_its_end);
  RUN(malformed_events_are_counted);
  RUN(phases_that_are_not_imported_are_counted);
  RUN(lists_and_objects_without_events_are_json);
  RUN(deeply_nested_arguments_are_cut_off);
  RUN(each_kind_of_value_is_read);
  return 0;
}
