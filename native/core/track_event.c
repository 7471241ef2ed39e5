#include "track_event.h"

#include <stdlib.h>

#include "clock.h"
#include "setters.h"

enum {
  SEQ_CLEARED = 1,
  SEQ_NEEDS_STATE = 2,

  /* The largest size of a packet's bytes before the fields of the event. */
  HEAD_SIZE = 96,
  MAX_NAMED_CALL = 3 * ST_INTERN_MAX_LENGTH + 2 * HEAD_SIZE,
};

bool st_sequence_init(struct st_sequence* s, struct st_arbiter* arbiter,
                      uint32_t target_buffer, enum st_exhausted_policy policy,
                      const struct st_track* thread_track) {
  memset(s, 0, sizeof *s);
  if (!st_trace_writer_init(&s->writer, arbiter, target_buffer, policy))
    return false;
  st_intern_init(&s->interned);
  uint32_t smallest = st_chunk_size(arbiter->shm.page_size, ST_PAGE_DIV14);
  s->state_span = smallest < ST_MIN_STATE_CHUNK ? UINT32_MAX / 2 : 0;
  s->room_limit = smallest / 4;
  s->thread_track = thread_track;
  return true;
}

void st_sequence_owe_end(struct st_sequence* s, uint64_t timestamp,
                         uint64_t track_uuid) {
  if (s->owed_count == s->owed_capacity) {
    uint32_t capacity = s->owed_capacity ? 2 * s->owed_capacity : 16;
    struct st_owed_end* grown =
        capacity > ST_MAX_OWED_ENDS
            ? NULL
            : realloc(s->owed, capacity * sizeof *grown);
    if (!grown) {
      s->ends_forgotten++;
      return;
    }
    s->owed = grown;
    s->owed_capacity = capacity;
  }
  s->owed[s->owed_count++] = (struct st_owed_end){timestamp, track_uuid};
}

/* Writes a clock snapshot that starts the sequence's own clock.  It says that
 * BOOTTIME and the sequence's clock both have the time `now`. */
static uint8_t* put_clock_snapshot(uint8_t* p, uint64_t now) {
  uint8_t clocks[64], one[32];
  uint8_t* o = st_clock_snapshot_clock_put_clock_id(one, ST_CLOCK_BOOTTIME);
  o = st_clock_snapshot_clock_put_timestamp(o, now);
  uint8_t* c = st_clock_snapshot_put_clocks(clocks, one, (size_t)(o - one));
  o = st_clock_snapshot_clock_put_clock_id(one, ST_CLOCK_SEQUENCE_INCREMENTAL);
  o = st_clock_snapshot_clock_put_timestamp(o, now);
  o = st_clock_snapshot_clock_put_is_incremental(o, true);
  o = st_clock_snapshot_clock_put_unit_multiplier_ns(o, 1);
  c = st_clock_snapshot_put_clocks(c, one, (size_t)(o - one));
  return st_trace_packet_put_clock_snapshot(p, clocks, (size_t)(c - clocks));
}

static uint8_t* put_defaults(uint8_t* p, uint64_t track_uuid) {
  uint8_t event[16], defaults[32];
  uint8_t* e = st_track_event_defaults_put_track_uuid(event, track_uuid);
  uint8_t* d = st_trace_packet_defaults_put_timestamp_clock_id(
      defaults, ST_CLOCK_SEQUENCE_INCREMENTAL);
  d = st_trace_packet_defaults_put_track_event_defaults(d, event,
                                                        (size_t)(e - event));
  return st_trace_packet_put_trace_packet_defaults(p, defaults,
                                                   (size_t)(d - defaults));
}

static uint8_t* put_absolute_time(uint8_t* p, uint64_t timestamp) {
  p = st_trace_packet_put_timestamp(p, timestamp);
  return st_trace_packet_put_timestamp_clock_id(p, ST_CLOCK_BOOTTIME);
}

static bool append_one(struct st_sequence* s, const uint8_t* data,
                       size_t size) {
  struct st_iovec piece = {data, size};
  return st_trace_writer_append(&s->writer, &piece, 1);
}

static bool append_state(struct st_sequence* s, uint64_t now) {
  uint8_t packet[160];
  uint8_t* p = put_absolute_time(packet, now);
  p = st_trace_packet_put_sequence_flags(p, SEQ_CLEARED);
  p = put_defaults(p, s->thread_track->uuid);
  p = put_clock_snapshot(p, now);
  return append_one(s, packet, (size_t)(p - packet));
}

/* Writes the stored ENDs, for which there was no room before.  Their timestamps
 * are absolute, because they are earlier than the start of the new incremental
 * state. */
static void append_owed_ends(struct st_sequence* s) {
  uint32_t done = 0;
  for (; done < s->owed_count; done++) {
    uint8_t event[24], packet[HEAD_SIZE];
    uint8_t* e = st_track_event_put_type(event, ST_SLICE_END);
    if (s->owed[done].track_uuid)
      e = st_track_event_put_track_uuid(e, s->owed[done].track_uuid);
    uint8_t* p = put_absolute_time(packet, s->owed[done].timestamp);
    p = st_trace_packet_put_sequence_flags(p, SEQ_NEEDS_STATE);
    p = st_trace_packet_put_track_event(p, event, (size_t)(e - event));
    if (!append_one(s, packet, (size_t)(p - packet)))
      break;
    if (!st_sequence_is_current(s)) {
      done++;
      break;
    }
  }
  s->owed_count -= done;
  memmove(s->owed, s->owed + done, s->owed_count * sizeof *s->owed);
}

/* Announces the incremental state in the current chunk.  Returns false if the
 * packets were lost, or if they continued in the next chunk, where the state
 * has to be announced again. */
static bool announce(struct st_sequence* s, uint64_t now) {
  s->epoch++;
  st_intern_clear(&s->interned);
  s->last_timestamp = now;
  uint32_t chunk_id = s->writer.chunk_id;
  if (!append_state(s, now))
    return false;
  s->state_chunk_id = chunk_id;
  s->state_valid = true;
  st_sequence_declare_track(s, s->thread_track);
  if (s->owed_count)
    append_owed_ends(s);
  return st_sequence_is_current(s);
}

bool st_sequence_prepare(struct st_sequence* s, uint64_t timestamp,
                         size_t room) {
  if (room > s->room_limit)
    room = s->room_limit;
  /* A second round is needed only if stored ENDs or long descriptors fill a
   * chunk. */
  for (int round = 0; round < 8; round++) {
    uint32_t drops = s->writer.drop_count;
    if (!st_trace_writer_ensure_room(&s->writer, room)) {
      s->state_valid = false;
      return false;
    }
    if (s->writer.drop_count != drops)
      s->state_valid = false;
    if (st_sequence_is_current(s))
      return true;
    if (announce(s, timestamp) && st_trace_writer_room(&s->writer) >= room)
      return true;
  }
  return st_sequence_is_current(s);
}

/* Writes the stored ENDs of a sequence that ends: no later event writes them.
 * Waits briefly for room. */
static void write_owed_ends(struct st_sequence* s) {
  s->writer.policy = ST_DROP;
  for (unsigned waits = 0; s->owed_count; waits++) {
    st_sequence_prepare(s, s->owed[0].timestamp, ST_EVENT_ROOM);
    if (s->owed_count && !st_arbiter_wait_at_end(s->writer.arbiter, waits))
      return;
  }
}

void st_sequence_destroy(struct st_sequence* s) {
  write_owed_ends(s);
  st_trace_writer_destroy(&s->writer);
  st_intern_destroy(&s->interned);
  free(s->owed);
  s->owed = NULL;
  s->owed_count = s->owed_capacity = 0;
}

void st_sequence_declare_track(struct st_sequence* s,
                               const struct st_track* track) {
  if (st_sequence_has_track(s, track->uuid))
    return;
  if (track->parent)
    st_sequence_declare_track(s, track->parent);
  uint8_t head[24];
  /* A reader takes the last description of a track.  Without a time it would
   * take one of another sequence for later, because that is read later. */
  uint8_t* p = st_trace_packet_put_timestamp(head, 0); /* the last event's */
  p = st_trace_packet_put_sequence_flags(p, SEQ_NEEDS_STATE);
  p = st_trace_packet_put_track_descriptor_size(p, track->descriptor_size);
  struct st_iovec pieces[] = {{head, (size_t)(p - head)},
                              {track->descriptor, track->descriptor_size}};
  if (!st_trace_writer_append(&s->writer, pieces, 2))
    return;
  struct st_seen_track* seen = &s->seen_tracks[st_seen_slot(track->uuid)];
  seen->uuid = track->uuid;
  seen->epoch = s->epoch;
  uint8_t* end = st_put_track_uuid(seen->field, track->uuid);
  seen->field_size = (uint32_t)(end - seen->field);
}

/* Writes the timestamp of the event, as a difference to the last timestamp.  If
 * the event is before the last timestamp, writes an absolute timestamp, which
 * leaves the sequence's own clock unchanged. */
static uint8_t* put_time(struct st_sequence* s, const struct st_event* e,
                         uint8_t* p) {
  if (e->explicit_timestamp || e->timestamp < s->last_timestamp)
    return put_absolute_time(p, e->timestamp);
  p = st_trace_packet_put_timestamp(p, e->timestamp - s->last_timestamp);
  s->last_timestamp = e->timestamp;
  return p;
}

static uint8_t* put_event_head(uint8_t* p, const struct st_event* e) {
  p = st_track_event_put_type(p, e->type);
  if (e->category_iid)
    p = st_track_event_put_category_iids(p, e->category_iid);
  if (e->name_iid)
    p = st_track_event_put_name_iid(p, e->name_iid);
  if (e->track_uuid)
    p = st_track_event_put_track_uuid(p, e->track_uuid);
  if (!e->name_iid && e->name_size)
    p = st_track_event_put_name_size(p, e->name_size);
  return p;
}

bool st_sequence_write(struct st_sequence* s, const struct st_event* e) {
  uint8_t event_head[HEAD_SIZE], head[HEAD_SIZE], tail[16];
  size_t name_size = e->name_iid ? 0 : e->name_size;
  size_t event_head_size = (size_t)(put_event_head(event_head, e) - event_head);

  uint8_t* p = put_time(s, e, head);
  p = st_trace_packet_put_sequence_flags(p, SEQ_NEEDS_STATE);
  p = st_trace_packet_put_track_event_size(
      p, event_head_size + name_size + e->fields_size);
  uint8_t* t = tail;
  if (e->interned_size)
    t = st_trace_packet_put_interned_data_size(t, e->interned_size);
  struct st_iovec pieces[] = {
      {head, (size_t)(p - head)}, {event_head, event_head_size},
      {e->name, name_size},       {e->fields, e->fields_size},
      {tail, (size_t)(t - tail)}, {e->interned, e->interned_size},
  };
  if (st_trace_writer_append(&s->writer, pieces, 6)) {
    s->events_written++;
    return true;
  }
  s->events_lost++;
  s->state_valid = false;
  if (e->type == ST_SLICE_END)
    st_sequence_owe_end(s, e->timestamp, e->track_uuid);
  return false;
}

/* The encoded fields sequence_flags = SEQ_NEEDS_INCREMENTAL_STATE and
 * track_event { type = END }. */
const struct st_event_block st_end_block = {
    6,
    {13 << 3, 2, 11 << 3 | ST_WIRE_DELIMITED, 2, 9 << 3, ST_SLICE_END}};

bool st_make_call_block(struct st_event_block* block, uint32_t category_iid,
                        uint32_t name_iid, uint32_t location_iid) {
  uint8_t bytes[ST_SMALL_EVENT] = {13 << 3, 2,      11 << 3 | ST_WIRE_DELIMITED,
                                   0,       9 << 3, ST_SLICE_BEGIN};
  uint8_t* p = st_put_small_ids(bytes + 6, category_iid, name_iid);
  /* The field TrackEvent.source_location_iid. */
  p = st_put_tag(p, 34, ST_WIRE_VARINT);
  p = st_put_varint(p, location_iid);
  size_t size = (size_t)(p - bytes);
  if (size > ST_BLOCK_BYTES)
    return false;
  /* The length of the field TracePacket.track_event. */
  bytes[3] = (uint8_t)(size - 4);
  memcpy(block->bytes, bytes, ST_BLOCK_BYTES);
  block->size = (uint8_t)size;
  return true;
}

static uint8_t* put_event_name(uint8_t* p, uint32_t iid,
                               const struct st_function* f) {
  uint8_t id[8];
  size_t id_size = (size_t)(st_event_name_put_iid(id, iid) - id);
  p = st_interned_data_put_event_names_size(
      p, id_size + 1 + st_varint_size(f->name_size) + f->name_size);
  p = st_event_name_put_iid(p, iid);
  return st_event_name_put_name(p, f->name, f->name_size);
}

static uint8_t* put_location(uint8_t* p, uint32_t iid,
                             const struct st_function* f) {
  uint8_t location[MAX_NAMED_CALL];
  uint8_t* l = st_source_location_put_iid(location, iid);
  l = st_source_location_put_file_name(l, f->file, f->file_size);
  l = st_source_location_put_function_name(l, f->name, f->name_size);
  l = st_source_location_put_line_number(l, f->line);
  return st_interned_data_put_source_locations(p, location,
                                               (size_t)(l - location));
}

bool st_sequence_write_named_call(struct st_sequence* s, uint64_t timestamp,
                                  uint32_t category_iid,
                                  const struct st_function* f,
                                  struct st_event_block* block) {
  if (!st_sequence_is_current(s) || timestamp < s->last_timestamp ||
      f->name_size > ST_INTERN_MAX_LENGTH ||
      f->file_size > ST_INTERN_MAX_LENGTH ||
      !st_trace_writer_reserve(&s->writer, MAX_NAMED_CALL))
    return false;
  uint32_t name = st_intern_take_id(&s->interned, ST_INTERN_EVENT_NAME);
  uint32_t location =
      st_intern_take_id(&s->interned, ST_INTERN_SOURCE_LOCATION);
  if (!name || !location ||
      !st_make_call_block(block, category_iid, name, location))
    return false;
  uint8_t head[HEAD_SIZE], interned[MAX_NAMED_CALL];
  uint8_t* i = put_event_name(interned, name, f);
  i = put_location(i, location, f);
  size_t interned_size = (size_t)(i - interned);
  uint8_t* p =
      st_trace_packet_put_timestamp(head, timestamp - s->last_timestamp);
  memcpy(p, block->bytes, ST_BLOCK_BYTES);
  p = st_trace_packet_put_interned_data_size(p + block->size, interned_size);
  struct st_iovec pieces[] = {{head, (size_t)(p - head)},
                              {interned, interned_size}};
  s->last_timestamp = timestamp;
  /* This append cannot fail, because the room was checked above. */
  st_trace_writer_append(&s->writer, pieces, 2);
  s->events_written++;
  return true;
}
