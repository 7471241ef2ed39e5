/* Fuzzes the importer: with the input as a trace, and with packets that the
 * input describes, in several files, whose fields are mostly valid.  References between rows must
 * be valid, and parents of slices must enclose them. */
#define CHECK_ABORTS
#include "../packet_builder.h"
#include "analysis/importer.h"
#include "analysis/slice_totals.h"
#include "check_rows.h"

struct input {
  const uint8_t* at;
  const uint8_t* end;
};

static uint8_t next(struct input* in) {
  return in->at < in->end ? *in->at++ : 0;
}

/* Mostly small numbers, sometimes the largest ones. */
static uint64_t number(struct input* in) {
  uint8_t byte = next(in);
  return byte < 250 ? byte % 16 : UINT64_MAX >> (byte - 250);
}

/* A message with fields of the given numbers. */
static struct message any_message(struct input* in, const uint32_t* fields,
                                  uint32_t count, uint32_t depth) {
  struct message m = {0};
  for (uint32_t n = next(in) % 8; n > 0; n--) {
    uint32_t field = fields[next(in) % count];
    uint8_t kind = next(in) % 4;
    if (kind == 0 && depth < 4) {
      struct message inner = any_message(in, fields, count, depth + 1);
      add_message(&m, field, &inner);
    } else if (kind == 1) {
      size_t size = next(in) % 8;
      size_t left = (size_t)(in->end - in->at);
      size = size < left ? size : left;
      add_bytes(&m, field, in->at, size);
      in->at += size;
    } else {
      add_number(&m, field, number(in));
    }
  }
  return m;
}

static const uint32_t kSmall[] = {1,  2,  3,  4,  5,  6,  7,  8, 9,
                                  10, 11, 12, 13, 14, 15, 16, 17};
static const uint32_t kEvent[] = {3,  22, 10, 23, 9,  11, 30, 44, 31, 12, 45,
                                  46, 36, 47, 42, 48, 52, 53, 54, 4,  5,  21,
                                  33, 34, 6,  1,  16, 25, 28, 29, 38, 49, 9900};
/* Fields of InternedData that make the stacks of profiles, and some others. */
static const uint32_t kInterned[] = {1, 2, 5, 6, 7, 16, 17, 19, 26};
#define ANY(in, fields) \
  any_message(in, fields, sizeof fields / sizeof *(fields), 0)

/* Makes a bundle of kernel events.  The ids of threads are small. */
static struct message any_bundle(struct input* in) {
  static const uint32_t kEvents[] = {
      3,   4,   11,  12,  13,  14,  16,  18,  20,    24,   25,  36,  37,
      57,  58,  235, 236, 240, 324, 325, 546, 547,   553,  554, 559, 560,
      313, 80,  314, 315, 326, 328, 329, 330, 331,   333,  334, 335, 348,
      351, 359, 360, 361, 362, 363, 365, 366, 367,   419,  420, 421, 437,
      438, 465, 466, 484, 542, 576, 577, 327, 65536, 65537};
  static const char* const kTexts[] = {
      "B|1|b",     "E|1",     "E",       "S|1|s|2",  "F|1|s|2",
      "G|1|t|g|1", "H|1|t|1", "N|1|t|n", "C|2|c|-5", "I|3|i"};
  struct message bundle = {0};
  add_number(&bundle, 1, next(in) % 4);
  for (uint32_t n = next(in) % 16; n > 0; n--) {
    struct message event = {0};
    uint32_t field = kEvents[next(in) % (sizeof kEvents / sizeof *kEvents)];
    add_number(&event, 1, number(in));
    add_number(&event, 2, next(in) % 4);
    struct message content = ANY(in, kSmall);
    if (field == 3)
      add_text(&content, 2, kTexts[next(in) % 10]);
    add_message(&event, field, &content);
    add_message(&bundle, 2, &event);
  }
  struct message compact = ANY(in, kSmall);
  add_message(&bundle, 4, &compact);
  struct message descriptor = {0}, described = ANY(in, kSmall);
  add_number(&descriptor, 1, 65536 + next(in) % 2);
  add_message(&descriptor, 2, &described);
  add_message(&bundle, 11, &descriptor);
  return bundle;
}

static struct message any_packet(struct input* in) {
  static const uint32_t kFields[] = {117, 120, 122, 11, 60, 6,  12, 59, 2,  9,
                                     45,  69,  35,  1,  1,  7,  34, 67, 12, 66,
                                     37,  54,  61,  68, 44, 72, 5,  107};
  struct message packet = begin_packet(next(in) % 4, number(in));
  uint32_t field = kFields[next(in) % (sizeof kFields / sizeof *kFields)];
  uint8_t flags = next(in);
  struct message content = field == 11   ? ANY(in, kEvent)
                           : field == 1  ? any_bundle(in)
                           : field == 12 ? ANY(in, kInterned)
                                         : ANY(in, kSmall);
  if (flags & 4)
    add_number(&packet, ST_FIELD_TRACE_PACKET_TIMESTAMP_CLOCK_ID,
               flags & 8 ? 64 : 3);
  add_number(&packet, ST_FIELD_TRACE_PACKET_SEQUENCE_FLAGS, flags & 3);
  if (flags & 32)
    add_number(&packet, ST_FIELD_TRACE_PACKET_MACHINE_ID, number(in));
  if (field == 11 && flags & 16)
    add_number(&content, ST_FIELD_TRACK_EVENT_TYPE, 1 + flags / 32 % 4);
  if (field == 11 || field == 60)
    add_number(&content, field == 11 ? 11u : 1u, flags / 64);
  add_message(&packet, field, &content);
  return packet;
}

static void check_slices(const struct st_importer* m) {
  const struct st_table* slices = &m->storage.tables[ST_SLICE_TABLE];
  uint32_t tracks = m->storage.tables[ST_TRACK_TABLE].rows;
  for (uint32_t i = 0; i < slices->rows; i++) {
    struct st_cell parent = st_table_get(slices, i, ST_SLICE_parent_id);
    int64_t ts = st_table_get(slices, i, ST_SLICE_ts).i;
    CHECK(st_table_get(slices, i, ST_SLICE_track_id).i < tracks);
    CHECK(ts >= 0 && st_table_get(slices, i, ST_SLICE_dur).i >= -1);
    CHECK(!parent.valid ||
          (parent.i < i &&
           st_table_get(slices, (uint32_t)parent.i, ST_SLICE_ts).i <= ts));
  }
}

static void finish(struct st_importer* m) {
  CHECK(st_importer_finish(m));
  check_slices(m);
  check_references(m, ST_TRACK_TABLE, ST_TRACK_utid, ST_THREAD_TABLE);
  check_references(m, ST_THREAD_TABLE, ST_THREAD_upid, ST_PROCESS_TABLE);
  check_references(m, ST_THREAD_TABLE, ST_THREAD_machine_id, ST_MACHINE_TABLE);
  check_references(m, ST_TRACK_TABLE, ST_TRACK_machine_id, ST_MACHINE_TABLE);
  check_references(m, ST_STATE_TABLE, ST_STATE_waker_id, ST_STATE_TABLE);
  check_references(m, ST_PROCESS_TABLE, ST_PROCESS_parent_upid,
                   ST_PROCESS_TABLE);
  check_references(m, ST_PERF_SAMPLE_TABLE, ST_PERF_SAMPLE_callsite_id,
                   ST_CALLSITE_TABLE);
  check_references(m, ST_CPU_SAMPLE_TABLE, ST_CPU_SAMPLE_callsite_id,
                   ST_CALLSITE_TABLE);
  check_references(m, ST_ALLOCATION_TABLE, ST_ALLOCATION_callsite_id,
                   ST_CALLSITE_TABLE);
  check_references(m, ST_CALLSITE_TABLE, ST_CALLSITE_parent_id,
                   ST_CALLSITE_TABLE);
  check_references(m, ST_CALLSITE_TABLE, ST_CALLSITE_frame_id, ST_FRAME_TABLE);
  check_references(m, ST_FRAME_TABLE, ST_FRAME_mapping, ST_MAPPING_TABLE);
  check_references(m, ST_HEAP_OBJECT_TABLE, ST_HEAP_OBJECT_reference_set_id,
                   ST_HEAP_REFERENCE_TABLE);
  check_references(m, ST_HEAP_REFERENCE_TABLE, ST_HEAP_REFERENCE_owned_id,
                   ST_HEAP_OBJECT_TABLE);
  check_references(m, ST_HEAP_CLASS_TABLE, ST_HEAP_CLASS_superclass_id,
                   ST_HEAP_CLASS_TABLE);
  check_references(m, ST_HEAP_TREE_TABLE, ST_HEAP_TREE_parent_id,
                   ST_HEAP_TREE_TABLE);
  check_references(m, ST_KERNEL_EVENT_TABLE, ST_KERNEL_EVENT_utid,
                   ST_THREAD_TABLE);
  check_references(m, ST_KERNEL_EVENT_TABLE, ST_KERNEL_EVENT_arg_set_id,
                   ST_RAW_ARGS_TABLE);
  check_references(m, ST_CHROME_EVENT_TABLE, ST_CHROME_EVENT_arg_set_id,
                   ST_RAW_ARGS_TABLE);
  struct st_slice_totals totals = {0};
  CHECK(st_slice_totals(&totals, &m->storage, ST_BY_FUNCTION));
  st_slice_totals_free(&totals);
  finish_checked(m);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct st_importer* m = st_importer_new();
  size_t half = size / 2;
  m->raw.is_kept = true;
  CHECK(st_importer_feed(m, data, half));
  CHECK(st_importer_feed(m, data + half, size - half));
  finish(m);
  m = st_importer_new();
  m->raw.is_kept = size % 4 != 0;
  struct input in = {data, data + size};
  while (in.at < in.end) {
    struct message packet = any_packet(&in);
    uint8_t header[16];
    uint8_t* end =
        st_put_varint(st_put_tag(header, 1, ST_WIRE_DELIMITED), packet.size);
    CHECK(st_importer_feed(m, header, (size_t)(end - header)));
    CHECK(st_importer_feed(m, packet.data, packet.size));
    if (packet.size % 16 == 7)
      CHECK(st_importer_next_file(m));
  }
  finish(m);
  return 0;
}
