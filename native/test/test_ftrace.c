#include <stdlib.h>
#include <string.h>

#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum {
  EVENT_TIMESTAMP = 1,
  EVENT_PID = 2,
  PRINT = 3,
  SCHED_SWITCH = 4,
  SCHED_WAKING = 20,
  TASK_NEWTASK = 235,
  PROCESS_FREE = 240,
  BUNDLE_CPU = 1,
  BUNDLE_EVENT = 2,
  BUNDLE_COMPACT = 4,
};

static struct message new_bundle(uint32_t cpu) {
  struct message bundle = {0};
  add_number(&bundle, BUNDLE_CPU, cpu);
  return bundle;
}

/* Adds an event of a thread. */
static void add_event(struct message* bundle, uint64_t ts, uint32_t pid,
                      uint32_t field, const struct message* content) {
  struct message event = {0};
  add_number(&event, EVENT_TIMESTAMP, ts);
  add_number(&event, EVENT_PID, pid);
  add_message(&event, field, content);
  add_message(bundle, BUNDLE_EVENT, &event);
}

static void add_switch(struct message* bundle, uint64_t ts, uint32_t prev,
                       uint32_t state, uint32_t next) {
  struct message content = {0};
  add_text(&content, 1, "prev");
  add_number(&content, 2, prev);
  add_number(&content, 4, state);
  add_text(&content, 5, next ? "next" : "swapper");
  add_number(&content, 6, next);
  add_number(&content, 7, 120);
  add_event(bundle, ts, prev, SCHED_SWITCH, &content);
}

static void add_waking(struct message* bundle, uint64_t ts, uint32_t pid,
                       uint32_t wakee) {
  struct message content = {0};
  add_text(&content, 1, "next");
  add_number(&content, 2, wakee);
  add_event(bundle, ts, pid, SCHED_WAKING, &content);
}

static void add_new_task(struct message* bundle, uint64_t ts, uint32_t pid,
                         uint32_t created, uint64_t flags) {
  struct message content = {0};
  add_number(&content, 1, created);
  add_text(&content, 2, "child");
  add_number(&content, 3, flags);
  add_event(bundle, ts, pid, TASK_NEWTASK, &content);
}

static void add_print(struct message* bundle, uint64_t ts, uint32_t pid,
                      const char* text) {
  struct message content = {0};
  add_text(&content, 2, text);
  add_event(bundle, ts, pid, PRINT, &content);
}

static void feed(struct st_importer* m, const struct message* bundle) {
  struct message packet = begin_packet(2, 0);
  uint8_t header[16];
  add_message(&packet, ST_FIELD_TRACE_PACKET_FTRACE_EVENTS, bundle);
  uint8_t* end =
      st_put_varint(st_put_tag(header, 1, ST_WIRE_DELIMITED), packet.size);
  CHECK(st_importer_feed(m, header, (size_t)(end - header)));
  CHECK(st_importer_feed(m, packet.data, packet.size));
}

static struct st_importer* import(const struct message* bundle) {
  struct st_importer* m = st_importer_new();
  feed(m, bundle);
  CHECK(st_importer_finish(m));
  return m;
}

static void check_state(const struct st_importer* m, uint32_t row, int64_t ts,
                        int64_t dur, const char* state) {
  CHECK_EQ(get(m, ST_STATE_TABLE, row, ST_STATE_ts), ts);
  CHECK_EQ(get(m, ST_STATE_TABLE, row, ST_STATE_dur), dur);
  CHECK(is_text(m, ST_STATE_TABLE, row, ST_STATE_state, state));
}

static void switches_and_wakeups_are_imported_as_runs_and_states(void) {
  struct message bundle = new_bundle(1);
  add_switch(&bundle, 100, 10, 1, 20); /* 10 sleeps, 20 runs. */
  add_waking(&bundle, 150, 20, 10);
  add_switch(&bundle, 200, 20, 0, 10); /* 20 stays runnable, 10 runs. */
  add_waking(&bundle, 250, 10, 20);
  struct st_importer* m = import(&bundle);
  CHECK_EQ(m->storage.tables[ST_SCHED_TABLE].rows, 2);
  CHECK_EQ(get(m, ST_SCHED_TABLE, 0, ST_SCHED_dur), 100);
  CHECK_EQ(get(m, ST_SCHED_TABLE, 0, ST_SCHED_ucpu), 1);
  CHECK(is_text(m, ST_SCHED_TABLE, 0, ST_SCHED_end_state, "R"));
  CHECK_EQ(get(m, ST_SCHED_TABLE, 1, ST_SCHED_dur), -1);
  CHECK_EQ(m->storage.tables[ST_STATE_TABLE].rows, 5);
  check_state(m, 0, 100, 50, "S");
  check_state(m, 1, 100, 100, "Running");
  check_state(m, 2, 150, 50, "R");
  check_state(m, 3, 200, -1, "R");
  check_state(m, 4, 200, -1, "Running");
  CHECK_EQ(get(m, ST_STATE_TABLE, 2, ST_STATE_waker_id), 1);
  CHECK_EQ(m->storage.tables[ST_SPURIOUS_TABLE].rows, 1);
  CHECK_EQ(m->storage.tables[ST_CPU_TABLE].rows, 1);
  CHECK_EQ(get(m, ST_CPU_TABLE, 0, ST_CPU_id), 1);
  st_importer_free(m);
}

static void add_array(struct message* m, uint32_t field, uint64_t a, uint64_t b,
                      uint64_t c) {
  uint8_t packed[32];
  uint8_t* end = st_put_varint(packed, a);
  end = st_put_varint(st_put_varint(end, b), c);
  add_bytes(m, field, packed, (size_t)(end - packed));
}

static struct message compact_switches(uint64_t last_comm) {
  struct message compact = {0}, bundle = new_bundle(0);
  add_text(&compact, 5, "a");
  add_text(&compact, 5, "b");
  add_array(&compact, 1, 100, 50, 50);
  add_array(&compact, 2, 1, 2, 1);
  add_array(&compact, 3, 10, 20, 10);
  add_array(&compact, 4, 120, 110, 120);
  add_array(&compact, 6, 0, 1, last_comm);
  add_message(&bundle, BUNDLE_COMPACT, &compact);
  return bundle;
}

static void first_compact_switch_of_a_cpu_has_no_row(void) {
  struct message bundle = compact_switches(0);
  struct st_importer* m = import(&bundle);
  CHECK_EQ(m->ftrace.switches_skipped, 1);
  CHECK_EQ(m->ftrace.compact_errors, 0);
  CHECK_EQ(m->storage.tables[ST_SCHED_TABLE].rows, 2);
  CHECK_EQ(get(m, ST_SCHED_TABLE, 0, ST_SCHED_ts), 150);
  CHECK_EQ(get(m, ST_SCHED_TABLE, 0, ST_SCHED_dur), 50);
  check_state(m, 0, 150, 50, "D");
  st_importer_free(m);
}

static void invalid_compact_switches_are_counted(void) {
  struct message bundle = compact_switches(7);
  struct st_importer* m = import(&bundle);
  CHECK_EQ(m->ftrace.compact_errors, 1);
  CHECK_EQ(m->storage.tables[ST_SCHED_TABLE].rows, 1);
  st_importer_free(m);
  bundle = new_bundle(5000);
  m = import(&bundle);
  CHECK_EQ(m->ftrace.bundle_errors, 1);
  st_importer_free(m);
}

static void new_tasks_are_imported_as_threads_and_processes(void) {
  struct message bundle = new_bundle(0);
  add_new_task(&bundle, 10, 5, 6, 0x10000);
  add_new_task(&bundle, 20, 5, 7, 0);
  add_print(&bundle, 30, 6, "B|5|work");
  add_print(&bundle, 40, 6, "E|5");
  struct message content = {0};
  add_number(&content, 2, 7);
  add_event(&bundle, 50, 0, PROCESS_FREE, &content);
  struct st_importer* m = import(&bundle);
  /* The text of thread 6 has the pid 5, so the threads 5 and 6 share a
   * process. */
  int64_t upid = get(m, ST_THREAD_TABLE, 2, ST_THREAD_upid);
  CHECK_EQ(get(m, ST_THREAD_TABLE, 1, ST_THREAD_upid), upid);
  CHECK_EQ(get(m, ST_PROCESS_TABLE, 1, ST_PROCESS_parent_upid), upid);
  CHECK_EQ(get(m, ST_PROCESS_TABLE, 1, ST_PROCESS_start_ts), 20);
  CHECK_EQ(get(m, ST_PROCESS_TABLE, 1, ST_PROCESS_end_ts), 50);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_dur), 10);
  st_importer_free(m);
}

static void texts_of_atrace_are_parsed(void) {
  static const char* const kTexts[] = {
      "S|5|async|1",    "S|5|async|1",
      "F|5|async|1",    "G|5|lane|a|1",
      "G|5|lane|b|2",   "H|5|lane|1",
      "H|5|lane|x|2",   "N|5|lane|mark",
      "C|5|queue|-3\n", "I|5|instant",
      "B|5|",           "other text",
      "S|5|async|",     "C|5|queue|1.5",
      "B|x|name",       "trace_event_clock_sync: x",
  };
  struct message bundle = new_bundle(0);
  for (uint32_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++)
    add_print(&bundle, 10 + i, 5, kTexts[i]);
  struct st_importer* m = import(&bundle);
  const struct st_table* slices = &m->storage.tables[ST_SLICE_TABLE];
  CHECK_EQ(m->ftrace.atrace_errors, 4);
  CHECK_EQ(slices->rows, 6);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_dur), 2);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_dur), 2);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 2, ST_SLICE_dur), 2);
  CHECK(get(m, ST_SLICE_TABLE, 1, ST_SLICE_track_id) !=
        get(m, ST_SLICE_TABLE, 2, ST_SLICE_track_id));
  CHECK_EQ(m->storage.tables[ST_COUNTER_TABLE].rows, 1);
  CHECK(st_table_get(&m->storage.tables[ST_COUNTER_TABLE], 0, ST_COUNTER_value)
            .f == -3);
  st_importer_free(m);
}

static void events_of_cpus_are_merged_by_time(void) {
  struct message first = new_bundle(0), second = new_bundle(3);
  struct st_importer* m = st_importer_new();
  for (uint64_t ts = 100; ts < 120; ts += 2) {
    add_print(&first, ts, 5, "I|5|even");
    add_print(&second, ts + 1, 6, "I|6|odd");
  }
  feed(m, &second);
  feed(m, &first);
  CHECK(st_importer_finish(m));
  CHECK_EQ(m->storage.tables[ST_SLICE_TABLE].rows, 20);
  for (uint32_t i = 0; i < 20; i++)
    CHECK_EQ(get(m, ST_SLICE_TABLE, i, ST_SLICE_ts), 100 + i);
  st_importer_free(m);
}

int main(void) {
  RUN(switches_and_wakeups_are_imported_as_runs_and_states);
  RUN(first_compact_switch_of_a_cpu_has_no_row);
  RUN(invalid_compact_switches_are_counted);
  RUN(new_tasks_are_imported_as_threads_and_processes);
  RUN(texts_of_atrace_are_parsed);
  RUN(events_of_cpus_are_merged_by_time);
  return 0;
}
