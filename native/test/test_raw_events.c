#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum {
  CPU_IDLE = 13,
  SYS_ENTER = 329,
  GENERIC = 327,
  DESCRIBED = 65536,
  BUNDLE_EVENT = 2,
  BUNDLE_DESCRIPTOR = 11,
  LAST_KIND = 600,
};

static struct st_importer* new_importer(bool is_kept) {
  struct st_importer* m = st_importer_new();
  m->raw.is_kept = is_kept;
  return m;
}

/* Feeds a bundle with an event or a descriptor. */
static void feed(struct st_importer* m, uint32_t part,
                 const struct message* content) {
  struct message packet = begin_packet(1, 1), bundle = {0};
  uint8_t data[sizeof packet.data + 16];
  add_number(&bundle, 1, 2);
  add_message(&bundle, part, content);
  add_message(&packet, ST_FIELD_TRACE_PACKET_FTRACE_EVENTS, &bundle);
  uint8_t* end = st_put_bytes_field(data, 1, packet.data, packet.size);
  CHECK(st_importer_feed(m, data, (size_t)(end - data)));
}

static void feed_event(struct st_importer* m, uint64_t ts, uint32_t kind,
                       const struct message* fields) {
  struct message event = {0};
  add_number(&event, 1, ts);
  add_number(&event, 2, 7);
  add_message(&event, kind, fields);
  feed(m, BUNDLE_EVENT, &event);
}

static void feed_idle(struct st_importer* m, uint64_t ts, uint64_t state) {
  struct message fields = {0};
  add_number(&fields, 1, state);
  add_number(&fields, 2, 2);
  feed_event(m, ts, CPU_IDLE, &fields);
}

static void add_described_field(struct message* event, const char* name,
                                uint64_t number, uint64_t type) {
  struct message field = {0};
  add_text(&field, 1, name);
  add_number(&field, 3, number);
  add_number(&field, 5, type);
  add_message(event, 2, &field);
}

/* Feeds a descriptor of events with one field. */
static void feed_descriptor(struct st_importer* m, uint64_t kind,
                            uint64_t number, uint64_t type) {
  struct message descriptor = {0}, event = {0};
  add_text(&event, 1, "made");
  add_described_field(&event, "size", number, type);
  add_number(&descriptor, 1, kind);
  add_message(&descriptor, 2, &event);
  feed(m, BUNDLE_DESCRIPTOR, &descriptor);
}

static uint32_t rows(const struct st_importer* m, uint32_t table) {
  return m->storage.tables[table].rows;
}

static int64_t cell(const struct st_importer* m, uint32_t row,
                    uint32_t column) {
  return get(m, ST_KERNEL_EVENT_TABLE, row, column);
}

static void check_arg(const struct st_importer* m, uint32_t row,
                      const char* key, int64_t value, const char* type) {
  CHECK(is_text(m, ST_RAW_ARGS_TABLE, row, ST_RAW_ARGS_key, key));
  CHECK_EQ(get(m, ST_RAW_ARGS_TABLE, row, ST_RAW_ARGS_int_value), value);
  CHECK(is_text(m, ST_RAW_ARGS_TABLE, row, ST_RAW_ARGS_value_type, type));
}

static void events_that_nobody_asked_for_are_only_counted(void) {
  struct st_importer* m = new_importer(false);
  feed_idle(m, 20, 1);
  feed_idle(m, 30, 1);
  feed_idle(m, 10, 1);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->raw.count, 3);
  for (uint32_t t = ST_FIRST_RAW_TABLE; t < ST_TABLE_COUNT; t++)
    CHECK_EQ(rows(m, t), 0);
  CHECK_EQ(rows(m, ST_KERNEL_TIME_TABLE), 2);
  CHECK_EQ(get(m, ST_KERNEL_TIME_TABLE, 0, ST_KERNEL_TIME_ts), 10);
  CHECK_EQ(get(m, ST_KERNEL_TIME_TABLE, 1, ST_KERNEL_TIME_ts), 30);
  st_importer_free(m);
}

static void kept_event_has_a_row_and_its_fields_as_arguments(void) {
  struct st_importer* m = new_importer(true);
  feed_idle(m, 20, 1);
  CHECK(st_importer_finish(m));
  CHECK_EQ(rows(m, ST_KERNEL_EVENT_TABLE), 1);
  CHECK_EQ(cell(m, 0, ST_KERNEL_EVENT_ts), 20);
  CHECK_EQ(cell(m, 0, ST_KERNEL_EVENT_ucpu), 2);
  CHECK_EQ(cell(m, 0, ST_KERNEL_EVENT_arg_set_id), 0);
  CHECK(is_text(m, ST_KERNEL_EVENT_TABLE, 0, ST_KERNEL_EVENT_name, "cpu_idle"));
  check_arg(m, 0, "state", 1, "uint");
  check_arg(m, 1, "cpu_id", 2, "uint");
  st_importer_free(m);
}

static void other_arguments_have_the_same_ids_with_raw_events(void) {
  uint32_t counts[2];
  for (int kept = 0; kept < 2; kept++) {
    struct st_importer* m = new_importer(kept);
    feed_idle(m, 20, 1);
    CHECK(st_importer_finish(m));
    counts[kept] = rows(m, ST_ARGS_TABLE);
    st_importer_free(m);
  }
  CHECK_EQ(counts[0], counts[1]);
}

static void last_element_of_a_repeated_field_is_the_argument(void) {
  struct st_importer* m = new_importer(true);
  struct message call = {0};
  add_number(&call, 1, 5);
  add_number(&call, 2, 1);
  add_number(&call, 2, 9);
  feed_event(m, 10, SYS_ENTER, &call);
  CHECK(st_importer_finish(m));
  CHECK_EQ(rows(m, ST_RAW_ARGS_TABLE), 2);
  check_arg(m, 1, "args", 9, "uint");
  st_importer_free(m);
}

static void descriptor_names_the_fields_of_generic_events(void) {
  struct st_importer* m = new_importer(true);
  struct message fields = {0};
  add_number(&fields, 1, 5);
  feed_event(m, 10, DESCRIBED, &fields);
  feed_descriptor(m, DESCRIBED, 1, 3);
  CHECK(st_importer_finish(m));
  CHECK(is_text(m, ST_KERNEL_EVENT_TABLE, 0, ST_KERNEL_EVENT_name, "made"));
  check_arg(m, 0, "size", 5, "int");
  CHECK_EQ(m->ftrace.descriptor_errors, 0);
  st_importer_free(m);
}

static void invalid_descriptors_and_their_events_are_counted(void) {
  struct st_importer* m = new_importer(true);
  struct message fields = {0};
  feed_descriptor(m, DESCRIBED, ST_RAW_FIELDS, 3);
  feed_descriptor(m, DESCRIBED + 1, 1, 19);
  feed_descriptor(m, DESCRIBED + 2, UINT64_MAX, UINT64_MAX);
  feed_descriptor(m, CPU_IDLE, 1, 3);
  feed_event(m, 10, DESCRIBED, &fields);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->ftrace.descriptor_errors, 4);
  CHECK_EQ(rows(m, ST_KERNEL_EVENT_TABLE), 0);
  st_importer_free(m);
}

static void values_of_wrong_wire_types_are_left_out(void) {
  struct st_importer* m = new_importer(true);
  struct message fields = {0};
  for (uint32_t number = 1; number < 40; number++) {
    add_text(&fields, number, "text");
    add_number(&fields, number, UINT64_MAX);
  }
  for (uint32_t kind = CPU_IDLE; kind < LAST_KIND; kind++)
    feed_event(m, kind, kind, &fields);
  CHECK(st_importer_finish(m));
  for (uint32_t i = 0; i < rows(m, ST_RAW_ARGS_TABLE); i++) {
    bool is_text_arg =
        is_text(m, ST_RAW_ARGS_TABLE, i, ST_RAW_ARGS_value_type, "string");
    CHECK(is_text_arg !=
          (get(m, ST_RAW_ARGS_TABLE, i, ST_RAW_ARGS_string_value) == -99));
  }
  st_importer_free(m);
}

int main(void) {
  RUN(events_that_nobody_asked_for_are_only_counted);
  RUN(kept_event_has_a_row_and_its_fields_as_arguments);
  RUN(other_arguments_have_the_same_ids_with_raw_events);
  RUN(last_element_of_a_repeated_field_is_the_argument);
  RUN(descriptor_names_the_fields_of_generic_events);
  RUN(invalid_descriptors_and_their_events_are_counted);
  RUN(values_of_wrong_wire_types_are_left_out);
  return 0;
}
