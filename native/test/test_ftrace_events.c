#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum { RSS_STAT = 313, SYS_ENTER = 329, PRINT = 3, LAST_KIND = 600 };

static void feed_event(struct st_importer* m, uint64_t ts, uint64_t pid,
                       uint32_t kind, const struct message* fields) {
  struct message packet = begin_packet(1, 1), bundle = {0}, event = {0};
  uint8_t data[sizeof packet.data + 16];
  add_number(&event, 1, ts);
  add_number(&event, 2, pid);
  add_message(&event, kind, fields);
  add_number(&bundle, 1, 0);
  add_message(&bundle, 2, &event);
  add_message(&packet, ST_FIELD_TRACE_PACKET_FTRACE_EVENTS, &bundle);
  uint8_t* end = st_put_bytes_field(data, 1, packet.data, packet.size);
  CHECK(st_importer_feed(m, data, (size_t)(end - data)));
}

static void counter_of_a_thread_belongs_to_its_process(void) {
  struct st_importer* m = st_importer_new();
  struct message rss = {0}, text = {0};
  add_number(&rss, 1, 1);
  add_number(&rss, 2, 4096);
  feed_event(m, 10, 7, RSS_STAT, &rss);
  add_text(&text, 2, "B|5|x"); /* The process of thread 7 is 5. */
  feed_event(m, 20, 7, PRINT, &text);
  CHECK(st_importer_finish(m));
  int64_t track = get(m, ST_COUNTER_TABLE, 0, ST_COUNTER_track_id);
  CHECK(is_text(m, ST_TRACK_TABLE, (uint32_t)track, ST_TRACK_name,
                "mem.rss.anon"));
  CHECK(get(m, ST_TRACK_TABLE, (uint32_t)track, ST_TRACK_upid) > 0);
  st_importer_free(m);
}

static void write_ends_before_a_slice_of_the_program(void) {
  struct st_importer* m = st_importer_new();
  struct message call = {0}, text = {0};
  m->machine->kinds.architecture = ST_ARCH_X86_64;
  add_number(&call, 1, 1);
  feed_event(m, 10, 7, SYS_ENTER, &call);
  add_text(&text, 2, "B|7|x");
  feed_event(m, 20, 7, PRINT, &text);
  CHECK(st_importer_finish(m));
  CHECK(is_text(m, ST_SLICE_TABLE, 0, ST_SLICE_name, "sys_write"));
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_dur), 10);
  CHECK_EQ(get(m, ST_SLICE_TABLE, 1, ST_SLICE_depth), 0);
  st_importer_free(m);
}

/* Events of all kinds without fields, and with numbers that are too large. */
static void events_with_any_fields_are_read(void) {
  struct message empty = {0}, large = {0};
  for (uint32_t field = 1; field < ST_KERNEL_FIELDS; field++)
    add_number(&large, field, UINT64_MAX - 1);
  struct st_importer* m = st_importer_new();
  for (uint32_t kind = 3; kind < LAST_KIND; kind++) {
    feed_event(m, kind, kind, kind, &empty);
    feed_event(m, kind, kind, kind, &large);
  }
  CHECK(st_importer_finish(m));
  CHECK(m->storage.tables[ST_COUNTER_TABLE].rows > 0);
  st_importer_free(m);
}

int main(void) {
  RUN(counter_of_a_thread_belongs_to_its_process);
  RUN(write_ends_before_a_slice_of_the_program);
  RUN(events_with_any_fields_are_read);
  return 0;
}
