/* Tests of packets that a relay has sent from other machines. */
#include "analysis/machines.h"

#include <stdlib.h>

#include "analysis/importer.h"
#include "check.h"
#include "importer_cells.h"
#include "packet_builder.h"

enum { REMOTE = 77, UUID = 7, SYNCED_CLOCKS = 1 };

static void feed(struct st_importer* m, struct message* packet,
                 uint32_t machine) {
  uint8_t header[16];
  if (machine)
    add_number(packet, ST_FIELD_TRACE_PACKET_MACHINE_ID, machine);
  uint8_t* end =
      st_put_varint(st_put_tag(header, 1, ST_WIRE_DELIMITED), packet->size);
  CHECK(st_importer_feed(m, header, (size_t)(end - header)));
  CHECK(st_importer_feed(m, packet->data, packet->size));
}

static void feed_thread(struct st_importer* m, uint32_t machine,
                        const char* name) {
  struct message thread = {0}, track = {0}, packet = begin_packet(2, 0);
  add_number(&packet, ST_FIELD_TRACE_PACKET_SEQUENCE_FLAGS, 1);
  add_number(&thread, ST_FIELD_THREAD_DESCRIPTOR_PID, 10);
  add_number(&thread, ST_FIELD_THREAD_DESCRIPTOR_TID, 11);
  add_text(&thread, ST_FIELD_THREAD_DESCRIPTOR_THREAD_NAME, name);
  add_number(&track, ST_FIELD_TRACK_DESCRIPTOR_UUID, UUID);
  add_message(&track, ST_FIELD_TRACK_DESCRIPTOR_THREAD, &thread);
  add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, &track);
  feed(m, &packet, machine);
}

static void feed_instant(struct st_importer* m, uint32_t machine, uint64_t ts,
                         uint64_t clock) {
  struct message packet = begin_packet(2, ts),
                 event =
                     track_event(ST_ENUM_TRACK_EVENT_TYPE_INSTANT, UUID, "i");
  if (clock)
    add_number(&packet, ST_FIELD_TRACE_PACKET_TIMESTAMP_CLOCK_ID, clock);
  add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_EVENT, &event);
  feed(m, &packet, machine);
}

static void same_pids_on_two_machines_are_two_processes(void) {
  struct st_importer* m = st_importer_new();
  feed_thread(m, 0, "here");
  feed_thread(m, REMOTE, "there");
  feed_instant(m, REMOTE, 20, 0);
  feed_instant(m, 0, 10, 0);
  CHECK(st_importer_finish(m));
  CHECK_EQ(get(m, ST_MACHINE_TABLE, 1, ST_MACHINE_raw_id), REMOTE);
  /* An idle thread, a main thread and a thread for each machine. */
  CHECK_EQ(m->storage.tables[ST_THREAD_TABLE].rows, 6);
  CHECK_EQ(m->storage.tables[ST_PROCESS_TABLE].rows, 4);
  for (uint32_t row = 0; row < 2; row++) {
    uint32_t track = (uint32_t)get(m, ST_SLICE_TABLE, row, ST_SLICE_track_id);
    uint32_t utid = (uint32_t)get(m, ST_TRACK_TABLE, track, ST_TRACK_utid);
    CHECK(is_text(m, ST_THREAD_TABLE, utid, ST_THREAD_name,
                  row ? "there" : "here"));
    CHECK_EQ(get(m, ST_THREAD_TABLE, utid, ST_THREAD_machine_id),
             row ? 1 : -99);
    CHECK_EQ(get(m, ST_TRACK_TABLE, track, ST_TRACK_machine_id), row ? 1 : -99);
  }
  st_importer_free(m);
}

static void add_clocks(struct message* pair, uint32_t field, uint64_t value) {
  struct message clock = {0}, snapshot = {0};
  add_number(&clock, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_CLOCK_ID, ST_CLOCK_BOOTTIME);
  add_number(&clock, ST_FIELD_CLOCK_SNAPSHOT_CLOCK_TIMESTAMP, value);
  add_message(&snapshot, ST_FIELD_CLOCK_SNAPSHOT_CLOCKS, &clock);
  add_message(pair, field, &snapshot);
}

/* The host's clock was 1000 behind; a message took 10. */
static void times_of_a_machine_become_those_of_the_host(void) {
  struct st_importer* m = st_importer_new();
  struct message sync = {0}, packet = begin_packet(1, 0);
  for (uint64_t ts = 5000; ts <= 5020; ts += 20) {
    struct message pair = {0};
    add_clocks(&pair, 2, ts);
    add_clocks(&pair, 3, ts + 10 - 1000);
    add_message(&sync, SYNCED_CLOCKS, &pair);
  }
  add_message(&packet, ST_FIELD_TRACE_PACKET_REMOTE_CLOCK_SYNC, &sync);
  feed(m, &packet, REMOTE);
  feed_thread(m, REMOTE, "there");
  feed_instant(m, REMOTE, 6000, ST_CLOCK_BOOTTIME);
  CHECK(st_importer_finish(m));
  CHECK_EQ(get(m, ST_SLICE_TABLE, 0, ST_SLICE_ts), 5000);
  st_importer_free(m);
}

static void packets_of_too_many_machines_are_counted(void) {
  struct st_importer* m = st_importer_new();
  for (uint32_t id = 1; id <= ST_MAX_MACHINES; id++)
    feed_instant(m, id, 10, 0);
  CHECK_EQ(m->machines.machines.size, ST_MAX_MACHINES);
  CHECK_EQ(m->counts.unread_packets, 1);
  CHECK(st_importer_finish(m));
  st_importer_free(m);
}

static void cpus_of_machines_have_ids_of_their_own(void) {
  struct st_importer* m = st_importer_new();
  struct message packet = begin_packet(2, 0), info = {0}, cpu = {0};
  add_text(&cpu, 1, "p");
  add_message(&info, 1, &cpu);
  add_message(&packet, ST_FIELD_TRACE_PACKET_CPU_INFO, &info);
  feed(m, &packet, 0);
  feed(m, &packet, REMOTE);
  CHECK(st_importer_finish(m));
  CHECK_EQ(get(m, ST_CPU_TABLE, 0, ST_CPU_ucpu), 0);
  CHECK_EQ(get(m, ST_CPU_TABLE, 1, ST_CPU_ucpu), ST_UCPUS);
  CHECK_EQ(get(m, ST_CPU_TABLE, 1, ST_CPU_cpu), 0);
  CHECK_EQ(get(m, ST_CPU_TABLE, 1, ST_CPU_machine_id), 1);
  st_importer_free(m);
}

int main(void) {
  RUN(same_pids_on_two_machines_are_two_processes);
  RUN(times_of_a_machine_become_those_of_the_host);
  RUN(packets_of_too_many_machines_are_counted);
  RUN(cpus_of_machines_have_ids_of_their_own);
  return 0;
}
