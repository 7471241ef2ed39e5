#include "analysis/importer.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrow.h"
#include "analysis/slice_totals.h"
#include "check.h"
#include "packet_builder.h"

enum {
  THREAD_TRACK = 7,
  BEGIN = ST_ENUM_TRACK_EVENT_TYPE_SLICE_BEGIN,
  END = ST_ENUM_TRACK_EVENT_TYPE_SLICE_END,
};

struct trace {
  uint8_t data[1 << 16];
  size_t size;
};

static void add_packet(struct trace* t, const struct message* packet) {
  CHECK(t->size + packet->size + 16 < sizeof t->data);
  t->size = (size_t)(st_put_bytes_field(t->data + t->size, 1, packet->data,
                                        packet->size) -
                     t->data);
}

static void add_thread_of(struct trace* t, uint64_t tid) {
  struct message thread = {0}, track = {0}, packet = begin_packet(2, 0);
  add_number(&packet, ST_FIELD_TRACE_PACKET_SEQUENCE_FLAGS, 1);
  add_number(&thread, ST_FIELD_THREAD_DESCRIPTOR_PID, 10);
  add_number(&thread, ST_FIELD_THREAD_DESCRIPTOR_TID, tid);
  add_text(&thread, ST_FIELD_THREAD_DESCRIPTOR_THREAD_NAME, "worker");
  add_number(&track, ST_FIELD_TRACK_DESCRIPTOR_UUID, THREAD_TRACK);
  add_message(&track, ST_FIELD_TRACK_DESCRIPTOR_THREAD, &thread);
  add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, &track);
  add_packet(t, &packet);
}

static void add_thread(struct trace* t) {
  add_thread_of(t, 11);
}

static void add_event(struct trace* t, uint64_t ts,
                      const struct message* event) {
  struct message packet = begin_packet(2, ts);
  add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_EVENT, event);
  add_packet(t, &packet);
}

static void add_slice_event(struct trace* t, uint64_t ts, uint64_t type,
                            const char* name) {
  struct message event = track_event(type, THREAD_TRACK, name);
  add_event(t, ts, &event);
}

/* Adds three slices: outer from 100 to 300, inner from 150 to 200, and open,
 * which begins at 400 and has no end. */
static void add_slices(struct trace* t) {
  add_thread(t);
  add_slice_event(t, 100, BEGIN, "outer");
  add_slice_event(t, 200, END, NULL);
  add_slice_event(t, 150, BEGIN, "inner");
  add_slice_event(t, 300, END, NULL);
  add_slice_event(t, 400, BEGIN, "open");
}

static struct st_importer* import(const struct trace* t, size_t step) {
  struct st_importer* m = st_importer_new();
  for (size_t at = 0; at < t->size; at += step) {
    size_t size = step < t->size - at ? step : t->size - at;
    CHECK(st_importer_feed(m, t->data + at, size));
  }
  CHECK(st_importer_finish(m));
  return m;
}

static int64_t get(const struct st_importer* m, uint32_t table, uint32_t row,
                   uint32_t column) {
  struct st_cell cell = st_table_get(&m->storage.tables[table], row, column);
  return cell.valid ? cell.i : -99;
}

static bool is_text(const struct st_importer* m, int64_t id,
                    const char* expected) {
  size_t size;
  const char* text = st_string_text(&m->storage.strings, (st_string)id, &size);
  return size == strlen(expected) && memcmp(text, expected, size) == 0;
}

static void check_slices(const struct st_importer* m) {
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 3);
  CHECK(is_text(m, get(m, ST_SLICE_TABLE, 0, ST_SLICE_name), "outer"));
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_dur), 200);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_dur), 50);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_parent_id), 0);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_depth), 1);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 2, ST_SLICE_dur), -1);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 2, ST_SLICE_parent_id), -99);
  CHECK_EQ(get(m, ST_TRACK_TABLE, 0, ST_TRACK_utid), 2);
  CHECK(is_text(m, get(m, ST_THREAD_TABLE, 2, ST_THREAD_name), "worker"));
}

static void slices_are_sorted_and_nested(void) {
  struct trace t = {0};
  add_slices(&t);
  struct st_importer* m = import(&t, t.size);
  check_slices(m);
  st_importer_free(m);
}

static void pieces_of_any_size_give_the_same_tables(void) {
  struct trace t = {0};
  add_slices(&t);
  for (size_t step = 1; step < t.size; step += 7) {
    struct st_importer* m = import(&t, step);
    check_slices(m);
    st_importer_free(m);
  }
}

static void cut_trace_is_read_up_to_its_end(void) {
  struct trace t = {0};
  add_slices(&t);
  t.size -= 3;
  struct st_importer* m = import(&t, t.size);
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 2);
  CHECK(m->counts.truncated_bytes > 0);
  st_importer_free(m);
}

static void add_annotation(struct message* event, uint32_t depth) {
  struct message annotation = {0}, inner = {0};
  add_text(&annotation, ST_FIELD_DEBUG_ANNOTATION_NAME, "a.b");
  for (int64_t i = 0; i < 2; i++) {
    struct message element = {0};
    add_number(&element, ST_FIELD_DEBUG_ANNOTATION_INT_VALUE, (uint64_t)i);
    add_message(&annotation, ST_FIELD_DEBUG_ANNOTATION_ARRAY_VALUES, &element);
  }
  add_text(&inner, ST_FIELD_DEBUG_ANNOTATION_NAME, "k");
  add_text(&inner, ST_FIELD_DEBUG_ANNOTATION_STRING_VALUE, "v\xFF");
  while (depth-- > 0) {
    struct message outer = {0};
    add_text(&outer, ST_FIELD_DEBUG_ANNOTATION_NAME, "d");
    add_message(&outer, ST_FIELD_DEBUG_ANNOTATION_DICT_ENTRIES, &inner);
    inner = outer;
  }
  add_message(&annotation, ST_FIELD_DEBUG_ANNOTATION_DICT_ENTRIES, &inner);
  add_message(event, ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS, &annotation);
}

static void annotations_are_flattened(void) {
  struct trace t = {0};
  struct message event = track_event(BEGIN, THREAD_TRACK, "args");
  add_thread(&t);
  add_annotation(&event, 0);
  add_event(&t, 100, &event);
  add_event(&t, 200, &event);
  struct st_importer* m = import(&t, t.size);
  int64_t set = get(m, ST_SLICE_TABLE, 0, ST_SLICE_arg_set_id);
  CHECK_EQ(set, get(m, ST_SLICE_TABLE, 1, ST_SLICE_arg_set_id));
  uint32_t row = (uint32_t)set;
  CHECK(is_text(m, get(m, ST_ARGS_TABLE, row, ST_ARGS_key), "debug.a_b[0]"));
  CHECK(is_text(m, get(m, ST_ARGS_TABLE, row, ST_ARGS_flat_key), "debug.a_b"));
  CHECK_EQ(get(m, ST_ARGS_TABLE, row + 1, ST_ARGS_int_value), 1);
  CHECK(is_text(m, get(m, ST_ARGS_TABLE, row + 2, ST_ARGS_key), "debug.a_b.k"));
  CHECK(is_text(m, get(m, ST_ARGS_TABLE, row + 2, ST_ARGS_string_value),
                "v\xEF\xBF\xBD"));
  st_importer_free(m);
}

static void deeply_nested_annotations_are_ignored(void) {
  struct trace t = {0};
  struct message event = track_event(BEGIN, THREAD_TRACK, "deep");
  add_thread(&t);
  add_annotation(&event, 100);
  add_event(&t, 100, &event);
  struct st_importer* m = import(&t, t.size);
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 1);
  st_importer_free(m);
}

static void slices_deeper_than_512_are_not_closed(void) {
  struct st_importer* m = st_importer_new();
  struct trace t = {0};
  add_thread(&t);
  CHECK(st_importer_feed(m, t.data, t.size));
  for (uint64_t i = 0; i < 600; i++) {
    t.size = 0;
    add_slice_event(&t, 100 + i, BEGIN, "nested");
    CHECK(st_importer_feed(m, t.data, t.size));
  }
  CHECK(st_importer_finish(m));
  CHECK_EQ(get(m, ST_SLICE_TABLE, 511, ST_SLICE_depth), 511);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 512, ST_SLICE_depth), 0);
  st_importer_free(m);
}

static void flows_link_slices(void) {
  struct trace t = {0};
  add_thread(&t);
  for (uint64_t i = 0; i < 3; i++) {
    struct message event = track_event(BEGIN, THREAD_TRACK, "flow");
    add_number(&event,
               i == 2 ? ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS_OLD
                      : ST_FIELD_TRACK_EVENT_FLOW_IDS_OLD,
               5);
    add_event(&t, 100 + i, &event);
  }
  struct st_importer* m = import(&t, t.size);
  CHECK_EQ(m->storage.tables[ST_FLOW_TABLE].rows, 2);
  CHECK_EQ(get(m, ST_FLOW_TABLE, 1, ST_FLOW_slice_out), 1);
  CHECK_EQ(get(m, ST_FLOW_TABLE, 1, ST_FLOW_slice_in), 2);
  st_importer_free(m);
}

static void incremental_clocks_are_converted(void) {
  struct trace t = {0};
  struct message snapshot = {0}, packet = begin_packet(2, 0);
  const uint64_t kClocks[2][2] = {{6, 1000}, {64, 5}};
  add_number(&packet, ST_FIELD_TRACE_PACKET_SEQUENCE_FLAGS, 1);
  for (int i = 0; i < 2; i++) {
    struct message clock = {0};
    add_number(&clock, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_CLOCK_ID, kClocks[i][0]);
    add_number(&clock, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_TIMESTAMP, kClocks[i][1]);
    if (i == 1) {
      add_number(&clock, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_IS_INCREMENTAL, 1);
      add_number(&clock, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_UNIT_MULTIPLIER_NS, 10);
    }
    add_message(&snapshot, ST_FIELD_CLOCK_SNAPSHOT_CLOCKS, &clock);
  }
  add_message(&packet, ST_FIELD_TRACE_PACKET_CLOCK_SNAPSHOT, &snapshot);
  add_packet(&t, &packet);
  for (int i = 0; i < 2; i++) {
    struct message event = track_event(BEGIN, 9, "tick");
    packet = begin_packet(2, 3);
    add_number(&packet, ST_FIELD_TRACE_PACKET_TIMESTAMP_CLOCK_ID, 64);
    add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_EVENT, &event);
    add_packet(&t, &packet);
  }
  struct st_importer* m = import(&t, t.size);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_ts), 1030);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_ts), 1060);
  CHECK_EQ(m->storage.tables[ST_CLOCK_TABLE].rows, 2);
  st_importer_free(m);
}

static void totals_count_recursion_once(void) {
  struct trace t = {0};
  add_thread(&t);
  struct message event = track_event(BEGIN, THREAD_TRACK, "f");
  add_number(&event, ST_FIELD_TRACK_EVENT_THREAD_TIME_ABSOLUTE_US, 3);
  add_event(&t, 100, &event);
  add_slice_event(&t, 110, BEGIN, "f");
  add_slice_event(&t, 120, BEGIN, "g");
  add_slice_event(&t, 150, END, NULL);
  add_slice_event(&t, 180, END, NULL);
  event = track_event(END, THREAD_TRACK, NULL);
  add_number(&event, ST_FIELD_TRACK_EVENT_THREAD_TIME_ABSOLUTE_US, 5);
  add_event(&t, 200, &event);
  struct st_importer* m = import(&t, t.size);
  CHECK_EQ(m->storage.tables[ST_COUNTER_TABLE].rows, 2);
  struct st_slice_totals totals = {0};
  CHECK(st_slice_totals(&totals, &m->storage, ST_BY_FUNCTION));
  CHECK_EQ(totals.groups.size, 2);
  CHECK_EQ(totals.groups.data[0].count, 2);
  CHECK_EQ(totals.groups.data[0].total, 100);
  CHECK_EQ(totals.groups.data[0].self, 70);
  CHECK_EQ(totals.groups.data[1].self, 30);
  CHECK_EQ(totals.groups.data[0].p50, 85);
  CHECK_EQ(totals.groups.data[0].max, 100);
  CHECK_EQ(totals.groups.data[0].cpu, 2000);
  CHECK_EQ(totals.first_ts, 100);
  CHECK_EQ(totals.end_ts, 200);
  st_slice_totals_free(&totals);
  st_importer_free(m);
}

static void cpu_time_of_an_open_slice_lasts_until_the_last_one_known(void) {
  struct trace t = {0};
  add_thread(&t);
  static const struct {
    uint64_t ts, cpu_us;
    int type;
    const char* name;
  } kEvents[] = {{100, 3, BEGIN, "work"}, {110, 4, BEGIN, "burn"},
                 {150, 9, END, NULL},     {160, 10, BEGIN, "open"},
                 {170, 12, BEGIN, "in"},  {180, 15, END, NULL}};
  for (size_t i = 0; i < sizeof kEvents / sizeof *kEvents; i++) {
    struct message event =
        track_event(kEvents[i].type, THREAD_TRACK, kEvents[i].name);
    add_number(&event, ST_FIELD_TRACK_EVENT_THREAD_TIME_ABSOLUTE_US,
               kEvents[i].cpu_us);
    add_event(&t, kEvents[i].ts, &event);
  }
  struct st_importer* m = import(&t, t.size);
  struct st_slice_totals totals = {0};
  CHECK(st_slice_totals(&totals, &m->storage, ST_BY_FUNCTION));
  CHECK_EQ(totals.groups.data[0].cpu, 12000);
  CHECK_EQ(totals.groups.data[1].cpu, 5000);
  CHECK_EQ(totals.groups.data[2].cpu, 5000);
  st_slice_totals_free(&totals);
  CHECK(st_slice_totals(&totals, &m->storage, ST_BY_TRACK));
  CHECK_EQ(totals.groups.data[0].cpu, 12000);
  st_slice_totals_free(&totals);
  st_importer_free(m);
}

static void arrow_array_outlives_the_importer(void) {
  struct trace t = {0};
  add_slices(&t);
  struct st_importer* m = import(&t, t.size);
  struct ArrowArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowArray array;
  CHECK(st_arrow_stream(m, &m->storage.tables[ST_SLICE_TABLE], &stream));
  st_importer_free(m);
  CHECK_EQ(stream.get_schema(&stream, &schema), 0);
  CHECK_EQ(stream.get_next(&stream, &array), 0);
  stream.release(&stream);
  CHECK_EQ(schema.n_children, ST_SLICE_COLUMNS);
  CHECK_EQ(strcmp(schema.children[ST_SLICE_name]->format, "i"), 0);
  CHECK_EQ(strcmp(schema.children[ST_SLICE_name]->dictionary->format, "U"), 0);
  CHECK_EQ(array.length, 3);
  const int64_t* dur = array.children[ST_SLICE_dur]->buffers[1];
  CHECK_EQ(dur[1], 50);
  const uint8_t* parents = array.children[ST_SLICE_parent_id]->buffers[0];
  CHECK_EQ(parents[0] & 7, 2);
  const int32_t* ids = array.children[ST_SLICE_id]->buffers[1];
  CHECK_EQ(ids[2], 2);
  CHECK_EQ(array.children[ST_SLICE_thread_ts]->null_count, 3);
  array.release(&array);
  schema.release(&schema);
}

static const char kJson[] =
    "[{\"ph\":\"X\",\"name\":\"j\",\"pid\":10,\"tid\":12,\"ts\":1,\"dur\":1}]";

/* Two files of packets, with the same writer and uuid for different threads,
 * and one of JSON. */
static struct st_importer* import_three_files(void) {
  struct st_importer* m = st_importer_new();
  for (uint64_t tid = 11; tid <= 12; tid++) {
    struct trace t = {0};
    add_thread_of(&t, tid);
    add_slice_event(&t, tid == 11 ? 300 : 200, BEGIN, "x");
    CHECK(st_importer_feed(m, t.data, t.size - (tid == 11)));
    CHECK(st_importer_next_file(m));
  }
  CHECK(st_importer_feed(m, kJson, sizeof kJson - 1));
  CHECK(st_importer_finish(m));
  return m;
}

static int64_t tid_of_slice(const struct st_importer* m, uint32_t slice) {
  int64_t track = get(m, ST_SLICE_TABLE, slice, ST_SLICE_track_id);
  int64_t utid = get(m, ST_TRACK_TABLE, (uint32_t)track, ST_TRACK_utid);
  return get(m, ST_THREAD_TABLE, (uint32_t)utid, ST_THREAD_tid);
}

static void files_of_an_archive_become_one_trace(void) {
  struct st_importer* m = import_three_files();
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 2);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_ts), 200);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_ts), 1000);
  CHECK_EQ(tid_of_slice(m, 0), 12);
  CHECK_EQ(tid_of_slice(m, 1), 12);
  CHECK(m->counts.truncated_bytes > 0);
  st_importer_free(m);
}

static void writers_and_tracks_belong_to_their_file(void) {
  struct st_importer* m = st_importer_new();
  for (uint64_t tid = 11; tid <= 12; tid++) {
    struct trace t = {0};
    add_thread_of(&t, tid);
    add_slice_event(&t, 100 * tid, BEGIN, "x");
    CHECK(st_importer_feed(m, t.data, t.size));
    CHECK(tid == 12 || st_importer_next_file(m));
  }
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 2);
  CHECK_EQ(tid_of_slice(m, 0), 11);
  CHECK_EQ(tid_of_slice(m, 1), 12);
  CHECK_EQ(m->counts.truncated_bytes, 0);
  st_importer_free(m);
}

int main(void) {
  RUN(writers_and_tracks_belong_to_their_file);
  RUN(files_of_an_archive_become_one_trace);
  RUN(slices_are_sorted_and_nested);
  RUN(pieces_of_any_size_give_the_same_tables);
  RUN(cut_trace_is_read_up_to_its_end);
  RUN(annotations_are_flattened);
  RUN(deeply_nested_annotations_are_ignored);
  RUN(slices_deeper_than_512_are_not_closed);
  RUN(flows_link_slices);
  RUN(incremental_clocks_are_converted);
  RUN(totals_count_recursion_once);
  RUN(cpu_time_of_an_open_slice_lasts_until_the_last_one_known);
  RUN(arrow_array_outlives_the_importer);
  return 0;
}
