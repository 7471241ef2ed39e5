#include "trace_scan.h"

#include <string.h>

#include "check.h"
#include "fields.h"
#include "trace_buffer.h"
#include "wire.h"

static uint8_t trace[1024];
static size_t size;
static size_t descriptors, compressed;
static char last[64];

static void on_descriptor(void* context, const uint8_t* data, size_t length) {
  CHECK(context == last);
  memcpy(last, data, length);
  last[length] = 0;
  descriptors++;
}

static void on_compressed(void* context, const uint8_t* data, size_t length) {
  CHECK(context == last);
  CHECK(length == 6 && !memcmp(data, "packed", 6));
  compressed++;
}

static struct st_trace_scan scan(size_t length, size_t* parsed) {
  struct st_trace_scan s = {.first_ns = UINT64_MAX,
                            .on_descriptor = on_descriptor,
                            .on_compressed = on_compressed,
                            .context = last};
  descriptors = compressed = 0;
  *parsed = st_trace_scan(&s, trace, length);
  return s;
}

static void add_packet(uint32_t field, const char* payload) {
  uint8_t packet[128], *p = packet;
  p = st_put_u64_field(p, ST_FIELD_TRACE_PACKET_TIMESTAMP, 7);
  p = st_put_bytes_field(p, field, payload, strlen(payload));
  uint8_t* end =
      st_put_bytes_field(trace + size, 1, packet, (size_t)(p - packet));
  size = (size_t)(end - trace);
}

static void events_are_counted_and_descriptors_found(void) {
  size = 0;
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, "event");
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, "one");
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, "event");
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, "two");
  add_packet(ST_FIELD_TRACE_PACKET_COMPRESSED_PACKETS, "packed");
  size_t parsed;
  struct st_trace_scan s = scan(size, &parsed);
  CHECK_EQ(parsed, size);
  CHECK_EQ(s.packets, 5);
  CHECK_EQ(compressed, 1);
  CHECK_EQ(s.track_events, 2);
  CHECK_EQ(descriptors, 2);
  CHECK(!strcmp(last, "two"));
}

static void source_locations_are_found(void) {
  uint8_t data[64];
  uint8_t* p = st_put_bytes_field(data, ST_FIELD_INTERNED_DATA_SOURCE_LOCATIONS,
                                  "shop.py", 7);
  p = st_put_bytes_field(p, ST_FIELD_INTERNED_DATA_EVENT_NAMES, "name", 4);
  p = st_put_bytes_field(p, ST_FIELD_INTERNED_DATA_LOG_MESSAGE_BODY, "a", 1);
  *p = 0;
  size = 0;
  add_packet(ST_FIELD_TRACE_PACKET_INTERNED_DATA, (const char*)data);
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, "one");
  size_t parsed;
  struct st_trace_scan counted = scan(size, &parsed);
  CHECK_EQ(counted.packets, 2);
  CHECK_EQ(counted.log_texts, 1);
  CHECK_EQ(descriptors, 1);
  struct st_trace_scan s = {.on_location = on_descriptor, .context = last};
  descriptors = 0;
  CHECK_EQ(st_trace_scan(&s, trace, size), size);
  CHECK_EQ(descriptors, 1);
  CHECK(!strcmp(last, "shop.py"));
}

static void statistics_of_ftrace_and_notes_are_found(void) {
  uint8_t event[3][32];
  const uint64_t uuids[] = {0x6e00000001, 0x6f00000001, 7};
  size = 0;
  for (size_t i = 0; i < 3; i++) {
    uint8_t* end =
        st_put_u64_field(event[i], ST_FIELD_TRACK_EVENT_TRACK_UUID, uuids[i]);
    *end = 0;
    add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, (const char*)event[i]);
  }
  struct st_trace_scan s = {
      .on_note = on_descriptor, .notes = 0x6f, .context = last};
  descriptors = 0;
  CHECK_EQ(st_trace_scan(&s, trace, size), size);
  CHECK_EQ(descriptors, 1);
  CHECK(!strcmp(last, (const char*)event[1]));
  add_packet(ST_FIELD_TRACE_PACKET_FTRACE_STATS, "stats");
  s = (struct st_trace_scan){.on_ftrace_stats = on_descriptor, .context = last};
  CHECK_EQ(st_trace_scan(&s, trace, size), size);
  CHECK_EQ(descriptors, 2);
  CHECK(!strcmp(last, "stats"));
  CHECK_EQ(s.track_events, 3);
}

static void tracks_of_notes_are_found(void) {
  uint8_t track[2][32];
  const uint64_t uuids[] = {7, 0x6f00000001};
  size = 0;
  for (size_t i = 0; i < 2; i++) {
    uint8_t* end =
        st_put_u64_field(track[i], ST_FIELD_TRACK_DESCRIPTOR_UUID, uuids[i]);
    *end = 0;
    add_packet(ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, (const char*)track[i]);
  }
  struct st_trace_scan s = {
      .on_notes_track = on_descriptor, .notes = 0x6f, .context = last};
  descriptors = 0;
  CHECK_EQ(st_trace_scan(&s, trace, size), size);
  CHECK_EQ(descriptors, 1);
  CHECK(!strcmp(last, (const char*)track[1]));
}

static void add_state(uint64_t time, uint64_t clock) {
  uint8_t packet[64], *p = packet;
  p = st_put_u64_field(p, ST_FIELD_TRACE_PACKET_TIMESTAMP, time);
  p = st_put_u64_field(p, ST_FIELD_TRACE_PACKET_TIMESTAMP_CLOCK_ID, clock);
  p = st_put_bytes_field(p, ST_FIELD_TRACE_PACKET_TRACE_PACKET_DEFAULTS, "", 0);
  uint8_t* end =
      st_put_bytes_field(trace + size, 1, packet, (size_t)(p - packet));
  size = (size_t)(end - trace);
}

static void oldest_state_of_a_sequence_is_found(void) {
  size = 0;
  size_t parsed;
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, "event");
  CHECK_EQ(scan(size, &parsed).first_ns, UINT64_MAX);
  add_state(300, ST_ENUM_CLOCK_SNAPSHOT_CLOCK_BOOTTIME);
  add_state(200, ST_ENUM_CLOCK_SNAPSHOT_CLOCK_BOOTTIME);
  add_state(100, ST_ENUM_CLOCK_SNAPSHOT_CLOCK_MONOTONIC);
  CHECK_EQ(scan(size, &parsed).first_ns, 200);
}

static void losses_by_full_shared_memory_are_counted(void) {
  size = 0;
  static const uint64_t kReasons[] = {1, 1 | ST_LOSS_SMB_FULL,
                                      1 | ST_LOSS_OVERWRITE, ST_LOSS_SMB_FULL};
  for (size_t i = 0; i < 4; i++) {
    uint8_t packet[16];
    uint8_t* end = st_put_u64_field(
        packet, ST_FIELD_TRACE_PACKET_PREVIOUS_PACKET_DROPPED, kReasons[i]);
    end = st_put_bytes_field(trace + size, 1, packet, (size_t)(end - packet));
    size = (size_t)(end - trace);
  }
  size_t parsed;
  CHECK_EQ(scan(size, &parsed).drops, 2);
  CHECK_EQ(parsed, size);
}

static void scan_stops_at_an_incomplete_packet(void) {
  size = 0;
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, "event");
  size_t first = size;
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, "event");
  for (size_t length = 0; length < size; length++) {
    size_t parsed;
    struct st_trace_scan s = scan(length, &parsed);
    CHECK_EQ(parsed, length < first ? 0 : first);
    CHECK_EQ(s.track_events, length < first ? 0 : 1);
  }
}

static void scan_stops_at_bytes_that_are_no_packet(void) {
  size = 0;
  add_packet(ST_FIELD_TRACE_PACKET_TRACK_EVENT, "event");
  size_t whole = size, parsed;
  memcpy(trace + size, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
  scan(size + 11, &parsed);
  CHECK_EQ(parsed, whole);
  memcpy(trace + size, "junk", 4);
  scan(size + 4, &parsed);
  CHECK_EQ(parsed, whole);
}

int main(void) {
  RUN(events_are_counted_and_descriptors_found);
  RUN(source_locations_are_found);
  RUN(statistics_of_ftrace_and_notes_are_found);
  RUN(tracks_of_notes_are_found);
  RUN(oldest_state_of_a_sequence_is_found);
  RUN(losses_by_full_shared_memory_are_counted);
  RUN(scan_stops_at_an_incomplete_packet);
  RUN(scan_stops_at_bytes_that_are_no_packet);
  return 0;
}
