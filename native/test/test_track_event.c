/* Tests of track event sequences, with a reader that starts at any chunk. */
#include "core/track_event.h"

#include "check.h"
#include "chunk_reader.h"
#include "core/clock.h"
#include "core/decoder.h"
#include "core/fields.h"

enum { PAGE = 16384, PAGES = 16 };
static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[PAGES * PAGE];
static struct chunk_reader reader;
static struct st_arbiter arbiter;
static struct st_sequence sequence;
static const uint8_t kProcessDescriptor[] = {0x08, 0x63};
static const uint8_t kThreadDescriptor[] = {0x08, 0x2A, 0x28, 0x63};
static const struct st_track kProcess = {99, kProcessDescriptor, 2, NULL};
static const struct st_track kThread = {42, kThreadDescriptor, 4, &kProcess};

static void start(size_t pages, size_t page_size) {
  struct st_shm shm;
  memset(memory, 0, sizeof memory);
  CHECK(st_shm_init(&shm, memory, pages * page_size, page_size));
  reader_init(&reader, &shm);
  CHECK(st_arbiter_init(&arbiter, &shm, &kReaderSink, &reader));
  CHECK(st_sequence_init(&sequence, &arbiter, 7, ST_DROP, &kThread));
}

static void end(void) {
  st_arbiter_destroy(&arbiter);
  reader_destroy(&reader);
}

struct model {
  /* Whether the state was announced before any other packet of the current
   * chunk. */
  bool state;
  uint64_t clock;
  unsigned events, begins, ends, announced, tracks;
  /* The number of events that came before any announcement of state. */
  unsigned without_state;
  uint64_t last_timestamp, last_track, default_track;
  bool dropped;
};

static bool find(const uint8_t* data, size_t size, uint32_t number,
                 struct st_field* out) {
  struct st_decoder d;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, out)) {
    if (out->number == number)
      return true;
  }
  return false;
}

static uint64_t value(const uint8_t* data, size_t size, uint32_t number) {
  struct st_field f;
  return find(data, size, number, &f) ? f.value : 0;
}

static void read_defaults(struct model* m, const uint8_t* p, size_t size) {
  struct st_field defaults, event;
  CHECK(find(p, size, ST_FIELD_TRACE_PACKET_TRACE_PACKET_DEFAULTS, &defaults));
  CHECK_EQ(value(defaults.data, defaults.size,
                 ST_FIELD_TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID),
           ST_CLOCK_SEQUENCE_INCREMENTAL);
  CHECK(find(defaults.data, defaults.size,
             ST_FIELD_TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS, &event));
  m->default_track =
      value(event.data, event.size, ST_FIELD_TRACK_EVENT_DEFAULTS_TRACK_UUID);
  m->state = true;
  m->announced++;
  m->clock = value(p, size, ST_FIELD_TRACE_PACKET_TIMESTAMP);
}

static void read_event(struct model* m, const uint8_t* p, size_t size,
                       const struct st_field* event) {
  uint64_t time = value(p, size, ST_FIELD_TRACE_PACKET_TIMESTAMP);
  bool absolute = value(p, size, ST_FIELD_TRACE_PACKET_TIMESTAMP_CLOCK_ID);
  m->last_timestamp = absolute ? time : (m->clock += time);
  m->without_state += !m->state;
  m->events++;
  uint64_t type = value(event->data, event->size, ST_FIELD_TRACK_EVENT_TYPE);
  m->begins += type == ST_SLICE_BEGIN;
  m->ends += type == ST_SLICE_END;
  uint64_t track =
      value(event->data, event->size, ST_FIELD_TRACK_EVENT_TRACK_UUID);
  m->last_track = track ? track : m->default_track;
}

static void read_packet(void* context, const uint8_t* p, size_t size) {
  struct model* m = context;
  struct st_field event;
  if (find(p, size, 42, &event)) {
    m->dropped = true;
    m->state = false;
  }
  uint64_t flags = value(p, size, ST_FIELD_TRACE_PACKET_SEQUENCE_FLAGS);
  if (flags & 1)
    read_defaults(m, p, size);
  m->tracks += find(p, size, ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR, &event);
  if (find(p, size, ST_FIELD_TRACE_PACKET_TRACK_EVENT, &event))
    read_event(m, p, size, &event);
}

/* Reads the chunks from `first` on, like a reader that has lost all earlier
 * chunks. */
static struct model read_from(size_t first) {
  struct model m = {0};
  struct packet_in_progress packet = {0};
  for (size_t i = first; i < reader.count; i++) {
    const struct chunk_copy* c = &reader.chunks[i];
    read_fragments(c, c->packets & ST_PACKETS_COUNT_MASK, &packet, read_packet,
                   &m);
  }
  free(packet.data);
  return m;
}

static bool emit(enum st_event_type type, uint64_t time) {
  if (st_sequence_write_small(&sequence, type, time, 0, 0, 0))
    return true;
  if (!st_sequence_prepare(&sequence, time, ST_EVENT_ROOM)) {
    if (type == ST_SLICE_END)
      st_sequence_owe_end(&sequence, time, 0);
    return false;
  }
  struct st_event event = {.type = type, .timestamp = time};
  return st_sequence_write(&sequence, &event);
}

static void state_is_announced_before_the_first_event(void) {
  start(PAGES, PAGE);
  CHECK(emit(ST_INSTANT, 1000));
  CHECK(emit(ST_INSTANT, 1500));
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.events, 2);
  CHECK_EQ(m.announced, 1);
  /* The descriptors of the process track and the thread track. */
  CHECK_EQ(m.tracks, 2);
  CHECK_EQ(m.without_state, 0);
  CHECK_EQ(m.last_timestamp, 1500);
  CHECK_EQ(m.last_track, 42);
  end();
}

static void state_is_announced_in_every_chunk(void) {
  start(PAGES, PAGE);
  reader.free_at_once = true;
  for (uint64_t i = 1; i <= 20000; i++)
    CHECK(emit(ST_INSTANT, i * 10));
  st_sequence_destroy(&sequence);
  CHECK(reader.count > 10);
  for (size_t first = 0; first < reader.count; first++) {
    struct model m = read_from(first);
    CHECK_EQ(m.without_state, 0);
    CHECK_EQ(m.last_timestamp, 200000);
  }
  CHECK_EQ(read_from(0).events, 20000);
  end();
}

static void state_is_announced_again_after_clear(void) {
  start(PAGES, PAGE);
  CHECK(emit(ST_INSTANT, 10));
  uint32_t epoch = sequence.epoch;
  st_sequence_clear_state(&sequence);
  CHECK(emit(ST_INSTANT, 20));
  CHECK_EQ(sequence.epoch, epoch + 1);
  st_sequence_destroy(&sequence);
  CHECK_EQ(read_from(0).announced, 2);
  end();
}

static void tiny_chunks_share_one_state(void) {
  start(16, 4096);
  reader.free_at_once = true;
  /* With so many writers each page has 14 chunks. */
  arbiter.live_writers = 300;
  for (uint64_t i = 1; i <= 3000; i++)
    CHECK(emit(ST_INSTANT, i));
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.events, 3000);
  CHECK_EQ(m.without_state, 0);
  CHECK(m.announced < 10);
  end();
}

static void timestamps_may_decrease(void) {
  start(PAGES, PAGE);
  CHECK(emit(ST_INSTANT, 5000));
  CHECK(emit(ST_INSTANT, 4000));
  CHECK(st_sequence_prepare(&sequence, 6000, ST_EVENT_ROOM));
  struct st_event event = {
      .type = ST_INSTANT, .timestamp = 100000, .explicit_timestamp = true};
  CHECK(st_sequence_write(&sequence, &event));
  CHECK(emit(ST_INSTANT, 6000));
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.events, 4);
  CHECK_EQ(m.last_timestamp, 6000);
  end();
}

static void lost_chunk_costs_only_its_own_events(void) {
  start(4, PAGE);
  unsigned written = 0, lost = 0;
  for (uint64_t i = 1; i <= 20000; i++) {
    if (i % 5000 == 0)
      while (reader_free_one(&reader)) {
      }
    bool ok = emit(ST_INSTANT, i);
    written += ok;
    lost += !ok;
  }
  while (reader_free_one(&reader)) {
  }
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK(lost > 1000);
  CHECK_EQ(m.events, written);
  CHECK_EQ(m.without_state, 0);
  CHECK(m.dropped);
  end();
}

static void lost_ends_are_written_later(void) {
  start(4, PAGE);
  unsigned begun = 0;
  while (emit(ST_SLICE_BEGIN, begun + 1))
    begun++;
  for (unsigned i = 0; i < 100; i++)
    CHECK(!emit(ST_SLICE_END, 100000 + i));
  CHECK_EQ(sequence.owed_count, 100);
  while (reader_free_one(&reader)) {
  }
  for (unsigned i = 100; i < begun; i++) {
    while (reader_free_one(&reader)) {
    }
    CHECK(emit(ST_SLICE_END, 200000 + i));
  }
  CHECK_EQ(sequence.owed_count, 0);
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.begins, begun);
  CHECK_EQ(m.ends, begun);
  CHECK_EQ(m.without_state, 0);
  end();
}

static void read_all(uint32_t us) {
  (void)us;
  while (reader_free_one(&reader)) {
  }
}

static unsigned sleeps;

static void do_nothing(uint32_t us) {
  (void)us;
  sleeps++;
}

static void lost_ends_are_written_when_the_sequence_ends(void) {
  start(4, PAGE);
  unsigned begun = 0;
  while (emit(ST_SLICE_BEGIN, begun + 1))
    begun++;
  for (unsigned i = 0; i < begun; i++)
    CHECK(!emit(ST_SLICE_END, 100000 + i));
  arbiter.wait_hooks.sleep_us = read_all;
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.begins, begun);
  CHECK_EQ(m.ends, begun);
  CHECK_EQ(m.without_state, 0);
  CHECK(m.dropped);
  end();
}

static void only_the_first_of_two_sequences_waits_for_room_at_its_end(void) {
  struct st_sequence second;
  start(4, PAGE);
  CHECK(st_sequence_init(&second, &arbiter, 7, ST_DROP, &kThread));
  arbiter.wait_hooks.sleep_us = do_nothing;
  while (emit(ST_SLICE_BEGIN, 1)) {
  }
  st_sequence_owe_end(&sequence, 2, 0);
  st_sequence_owe_end(&second, 2, 0);
  sleeps = 0;
  st_sequence_destroy(&sequence);
  CHECK_EQ(sleeps, 6);
  st_sequence_destroy(&second);
  CHECK_EQ(sleeps, 6);
  end();
}

static void number_of_owed_ends_is_bounded(void) {
  start(4, PAGE);
  while (emit(ST_INSTANT, 1)) {
  }
  for (unsigned i = 0; i < 2 * ST_MAX_OWED_ENDS; i++)
    emit(ST_SLICE_END, 2);
  CHECK_EQ(sequence.owed_count, ST_MAX_OWED_ENDS);
  CHECK_EQ(sequence.ends_forgotten, ST_MAX_OWED_ENDS);
  st_sequence_destroy(&sequence);
  end();
}

static void tracks_are_described_once_per_epoch(void) {
  start(PAGES, PAGE);
  static const uint8_t descriptor[] = {0x08, 0x07};
  struct st_track track = {7, descriptor, 2, &kThread};
  CHECK(st_sequence_prepare(&sequence, 1, ST_EVENT_ROOM));
  for (int i = 0; i < 5; i++)
    st_sequence_declare_track(&sequence, &track);
  CHECK(emit(ST_INSTANT, 2));
  st_sequence_destroy(&sequence);
  CHECK_EQ(read_from(0).tracks, 3);
  end();
}

/* Writes a small event on a track, which may be described before, and returns
 * the uuid that a reader finds in the event. */
static uint64_t track_of_event(uint64_t uuid, bool described) {
  start(PAGES, PAGE);
  CHECK(emit(ST_INSTANT, 10));
  struct st_track track = {uuid, kThreadDescriptor, 4, NULL};
  if (described)
    st_sequence_declare_track(&sequence, &track);
  CHECK(st_sequence_write_small(&sequence, ST_INSTANT, 20, 1, 2, uuid));
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.events, 2);
  end();
  return m.last_track;
}

static void events_have_the_uuid_of_their_track(void) {
  const uint64_t uuids[] = {7, 1ULL << 40, 1ULL << 62, 0xFEDCBA9876543210};
  for (size_t i = 0; i < sizeof uuids / sizeof *uuids; i++) {
    CHECK_EQ(track_of_event(uuids[i], true), uuids[i]);
    CHECK_EQ(track_of_event(uuids[i], false), uuids[i]);
  }
}

static void large_event_spans_several_chunks(void) {
  start(PAGES, PAGE);
  reader.free_at_once = true;
  static uint8_t fields[3 * PAGE];
  uint8_t* p = st_put_tag(fields, ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS,
                          ST_WIRE_DELIMITED);
  p = st_put_varint(p, sizeof fields - 16);
  for (int i = 0; i < 20; i++) {
    CHECK(st_sequence_prepare(&sequence, 10, ST_EVENT_ROOM));
    struct st_event event = {
        .type = ST_INSTANT,
        .timestamp = 10,
        .fields = fields,
        .fields_size = sizeof fields - 16 + (size_t)(p - fields)};
    CHECK(st_sequence_write(&sequence, &event));
    CHECK(emit(ST_INSTANT, 20));
  }
  st_sequence_destroy(&sequence);
  struct model m = read_from(0);
  CHECK_EQ(m.events, 40);
  CHECK_EQ(m.without_state, 0);
  end();
}

int main(void) {
  RUN(state_is_announced_before_the_first_event);
  RUN(state_is_announced_in_every_chunk);
  RUN(state_is_announced_again_after_clear);
  RUN(tiny_chunks_share_one_state);
  RUN(timestamps_may_decrease);
  RUN(lost_chunk_costs_only_its_own_events);
  RUN(lost_ends_are_written_later);
  RUN(lost_ends_are_written_when_the_sequence_ends);
  RUN(only_the_first_of_two_sequences_waits_for_room_at_its_end);
  RUN(number_of_owed_ends_is_bounded);
  RUN(tracks_are_described_once_per_epoch);
  RUN(events_have_the_uuid_of_their_track);
  RUN(large_event_spans_several_chunks);
  return 0;
}
