#include <string.h>

#include "analysis/importer.h"
#include "analysis/messages.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum {
  CPU = 1,
  PID = 2,
  TID = 3,
  CALLSTACK = 4,
  SEQUENCE = 3,
};

static void feed(struct st_importer* m, const struct message* packet) {
  uint8_t data[sizeof packet->data + 16];
  uint8_t* end = st_put_bytes_field(data, 1, packet->data, packet->size);
  CHECK(st_importer_feed(m, data, (size_t)(end - data)));
}

static void intern(struct message* data, uint32_t field, uint64_t iid,
                   const char* text) {
  struct message string = {0};
  add_number(&string, 1, iid);
  add_text(&string, 2, text);
  add_message(data, field, &string);
}

static void intern_frame(struct message* data, uint64_t iid, uint64_t function,
                         uint64_t pc) {
  struct message frame = {0};
  add_number(&frame, 1, iid);
  add_number(&frame, 2, function);
  add_number(&frame, 3, 1);
  add_number(&frame, 4, pc);
  add_message(data, ST_FIELD_INTERNED_DATA_FRAMES, &frame);
}

/* Interns the stacks 1 (main) and 2 (main, work), in a mapping with the given
 * range. */
static void feed_stacks(struct st_importer* m, uint64_t start, uint64_t end) {
  struct message packet = begin_packet(SEQUENCE, 0), data = {0}, mapping = {0};
  intern(&data, ST_FIELD_INTERNED_DATA_FUNCTION_NAMES, 1, "main");
  intern(&data, ST_FIELD_INTERNED_DATA_FUNCTION_NAMES, 2, "work");
  intern(&data, ST_FIELD_INTERNED_DATA_MAPPING_PATHS, 1, "app");
  intern(&data, ST_FIELD_INTERNED_DATA_BUILD_IDS, 1, "\x01\xab");
  add_number(&mapping, 1, 1);
  add_number(&mapping, 2, 1);
  add_number(&mapping, 4, start);
  add_number(&mapping, 5, end);
  add_number(&mapping, 7, 1);
  add_message(&data, ST_FIELD_INTERNED_DATA_MAPPINGS, &mapping);
  intern_frame(&data, 1, 1, 10);
  intern_frame(&data, 2, 2, 20);
  for (uint64_t iid = 1; iid <= 2; iid++) {
    struct message stack = {0};
    add_number(&stack, 1, iid);
    for (uint64_t frame = 1; frame <= iid; frame++)
      add_number(&stack, 2, frame);
    add_message(&data, ST_FIELD_INTERNED_DATA_CALLSTACKS, &stack);
  }
  add_number(&packet, ST_FIELD_TRACE_PACKET_SEQUENCE_FLAGS, 1);
  add_message(&packet, ST_FIELD_TRACE_PACKET_INTERNED_DATA, &data);
  feed(m, &packet);
}

static void feed_sample(struct st_importer* m, uint64_t ts, uint64_t pid,
                        uint64_t stack) {
  struct message packet = begin_packet(SEQUENCE, ts), sample = {0};
  add_number(&sample, CPU, 1);
  add_number(&sample, PID, pid);
  add_number(&sample, TID, pid);
  add_number(&sample, CALLSTACK, stack);
  add_message(&packet, ST_FIELD_TRACE_PACKET_PERF_SAMPLE, &sample);
  feed(m, &packet);
}

static int64_t stack_of(const struct st_importer* m, uint32_t sample) {
  return get(m, ST_PERF_SAMPLE_TABLE, sample, ST_PERF_SAMPLE_callsite_id);
}

static void equal_stacks_are_stored_once(void) {
  struct st_importer* m = st_importer_new();
  feed_stacks(m, 0, 0);
  feed_sample(m, 10, 7, 2);
  feed_sample(m, 20, 7, 1);
  feed_sample(m, 30, 8, 2);
  feed_stacks(m, 0, 0);
  feed_sample(m, 40, 8, 2);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_PERF_SAMPLE_TABLE].rows, 4);
  CHECK_EQ(m->storage.tables[ST_CALLSITE_TABLE].rows, 2);
  CHECK_EQ(m->storage.tables[ST_MAPPING_TABLE].rows, 1);
  CHECK_EQ(stack_of(m, 0), 1);
  CHECK_EQ(stack_of(m, 1), 0);
  CHECK_EQ(stack_of(m, 2), 1);
  CHECK_EQ(stack_of(m, 3), 1);
  CHECK_EQ(get(m, ST_CALLSITE_TABLE, 1, ST_CALLSITE_parent_id), 0);
  CHECK(is_text(m, ST_FRAME_TABLE, 1, ST_FRAME_name, "work"));
  CHECK(is_text(m, ST_MAPPING_TABLE, 0, ST_MAPPING_name, "/app"));
  CHECK(is_text(m, ST_MAPPING_TABLE, 0, ST_MAPPING_build_id, "01ab"));
  st_importer_free(m);
}

static void mapping_with_a_range_belongs_to_a_process(void) {
  struct st_importer* m = st_importer_new();
  feed_stacks(m, 100, 200);
  feed_sample(m, 10, 7, 1);
  feed_sample(m, 20, 8, 1);
  feed_sample(m, 30, 7, 1);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_MAPPING_TABLE].rows, 2);
  CHECK_EQ(stack_of(m, 0), 0);
  CHECK_EQ(stack_of(m, 1), 1);
  CHECK_EQ(stack_of(m, 2), 0);
  st_importer_free(m);
}

static void missing_stack_is_counted(void) {
  struct st_importer* m = st_importer_new();
  feed_stacks(m, 0, 0);
  feed_sample(m, 10, 7, 9);
  CHECK(st_importer_finish(m));
  CHECK_EQ(stack_of(m, 0), -99);
  CHECK_EQ(st_get_stat(m, "stackprofile_invalid_callstack_id", ST_NO_INDEX), 1);
  st_importer_free(m);
}

/* A stack of 1,300 frames is read for one process after the other. */
static void frames_of_all_samples_are_limited_by_the_size_of_the_trace(void) {
  struct st_importer* m = st_importer_new();
  feed_stacks(m, 100, 200);
  struct message packet = begin_packet(SEQUENCE, 0), data = {0}, stack = {0};
  add_number(&stack, 1, 3);
  for (uint64_t frame = 0; frame < 1300; frame++)
    add_number(&stack, 2, 1 + frame % 2);
  add_message(&data, ST_FIELD_INTERNED_DATA_CALLSTACKS, &stack);
  add_message(&packet, ST_FIELD_TRACE_PACKET_INTERNED_DATA, &data);
  feed(m, &packet);
  for (uint32_t pid = 1; pid <= 600; pid++) {
    struct message sampled = begin_packet(SEQUENCE, 0), sample = {0};
    add_number(&sample, PID, pid);
    add_number(&sample, CALLSTACK, 3);
    add_message(&sampled, ST_FIELD_TRACE_PACKET_PERF_SAMPLE, &sample);
    feed(m, &sampled);
  }
  uint64_t most = ST_FRAMES_PER_BYTE * m->fed_bytes + 601;
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_PERF_SAMPLE_TABLE].rows, 600);
  CHECK(m->stacks.frames_read <= most);
  st_importer_free(m);
}

static void symbols_name_the_frames_of_their_address(void) {
  struct st_importer* m = st_importer_new();
  feed_stacks(m, 100, 200);
  feed_sample(m, 10, 7, 2);
  struct message packet = begin_packet(0, 20), symbols = {0}, address = {0},
                 line = {0};
  add_text(&line, 1, "symbol");
  add_number(&address, 1, 20);
  add_message(&address, 2, &line);
  add_text(&symbols, 1, "/app");
  add_text(&symbols, 2, "\x01\xab");
  add_message(&symbols, 3, &address);
  add_message(&packet, ST_FIELD_TRACE_PACKET_MODULE_SYMBOLS, &symbols);
  feed(m, &packet);
  feed_sample(m, 30, 8, 2); /* Its frames are newer than the symbols. */
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_FRAME_TABLE].rows, 4);
  CHECK_EQ(get(m, ST_FRAME_TABLE, 0, ST_FRAME_symbol_set_id), -99);
  CHECK_EQ(get(m, ST_FRAME_TABLE, 1, ST_FRAME_symbol_set_id), 0);
  CHECK_EQ(get(m, ST_FRAME_TABLE, 3, ST_FRAME_symbol_set_id), -99);
  CHECK(is_text(m, ST_SYMBOL_TABLE, 0, ST_SYMBOL_name, "symbol"));
  st_importer_free(m);
}

/* The packet's timestamp is converted from the clock 4. */
static void feed_clocks(struct st_importer* m) {
  struct message packet = begin_packet(0, 0), snapshot = {0};
  for (uint64_t id = 4; id <= 6; id += 2) {
    struct message clock = {0};
    add_number(&clock, 1, id);
    add_number(&clock, 2, 1);
    add_message(&snapshot, 1, &clock);
  }
  add_message(&packet, ST_FIELD_TRACE_PACKET_CLOCK_SNAPSHOT, &snapshot);
  feed(m, &packet);
}

static void feed_heap(struct st_importer* m, uint64_t index, uint64_t size,
                      uint64_t freed, bool is_continued) {
  struct message packet = begin_packet(SEQUENCE, 10 * index), profile = {0};
  struct message dump = {0}, sample = {0};
  add_number(&sample, 1, 1);
  add_number(&sample, 2, size);
  add_number(&sample, 3, freed);
  add_number(&sample, 5, size / 100);
  add_number(&sample, 6, freed / 100);
  add_number(&dump, 1, 7);
  add_number(&dump, 9, 10 * (index + 1));
  add_message(&dump, 2, &sample);
  add_message(&profile, 5, &dump);
  add_number(&profile, 6, is_continued);
  add_number(&profile, 7, index);
  add_message(&packet, ST_FIELD_TRACE_PACKET_PROFILE_PACKET, &profile);
  feed(m, &packet);
}

static void check_allocation(const struct st_importer* m, uint32_t row,
                             int64_t ts, int64_t count, int64_t size) {
  CHECK_EQ(get(m, ST_ALLOCATION_TABLE, row, ST_ALLOCATION_ts), ts);
  CHECK_EQ(get(m, ST_ALLOCATION_TABLE, row, ST_ALLOCATION_count), count);
  CHECK_EQ(get(m, ST_ALLOCATION_TABLE, row, ST_ALLOCATION_size), size);
}

static void allocations_are_differences_of_profiles(void) {
  struct st_importer* m = st_importer_new();
  feed_clocks(m);
  feed_stacks(m, 0, 0);
  feed_heap(m, 0, 300, 0, false);
  feed_heap(m, 1, 500, 200, false);
  feed_heap(m, 2, 100, 200, false); /* Less than before: malformed. */
  feed_heap(m, 3, 600, 200, true);  /* Not complete. */
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_ALLOCATION_TABLE].rows, 3);
  check_allocation(m, 0, 10, 3, 300);
  check_allocation(m, 1, 20, 2, 200);
  check_allocation(m, 2, 20, -2, -200);
  CHECK_EQ(st_get_stat(m, "heapprofd_malformed_packet", 1), 1);
  st_importer_free(m);
}

static void packed_and_single_integers_are_read(void) {
  static const uint8_t kPacked[] = {1, 2, 0x80}; /* The last one is cut. */
  struct message message = {0};
  uint64_t value, sum = 0, count = 0;
  struct st_integers it;
  add_number(&message, 2, 10);
  add_bytes(&message, 2, kPacked, sizeof kPacked);
  add_bytes(&message, 2, "", 0);
  add_number(&message, 3, 1000);
  add_number(&message, 2, 20);
  struct st_field field = {.data = message.data, .size = message.size};
  st_integers_init(&it, field, 2);
  for (; st_integers_next(&it, &value); count++)
    sum += value;
  CHECK_EQ(count, 4);
  CHECK_EQ(sum, 33);
}

int main(void) {
  RUN(equal_stacks_are_stored_once);
  RUN(mapping_with_a_range_belongs_to_a_process);
  RUN(missing_stack_is_counted);
  RUN(frames_of_all_samples_are_limited_by_the_size_of_the_trace);
  RUN(symbols_name_the_frames_of_their_address);
  RUN(allocations_are_differences_of_profiles);
  RUN(packed_and_single_integers_are_read);
  return 0;
}
