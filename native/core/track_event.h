/* Track event sequence: encodes the events of one thread for one session.
 *
 * A sequence is a trace writer with incremental state: strings are written once
 * and then referred to by id, timestamps are differences, the thread's track is
 * the default.  To decode an event, a reader needs the packet in which that
 * state began.  Therefore:
 *
 *   every chunk can be decoded alone
 *
 * The first packet in each chunk of a sequence clears the state and announces
 * it again. No event starts in a chunk before its state was announced there. So
 * a loss (a dropped chunk, a ring that wrapped, a killed process) costs only
 * the events in the lost chunk, and never a name, a track or the time of
 * another event.
 *
 *   chunk  | state | process | thread | event | event | track | event | ...
 *
 *   state    timestamp, sequence_flags = CLEARED, defaults (clock 64, thread
 *            track), clock snapshot {BOOTTIME t, 64 = t incremental}
 *   process, thread, track   TrackDescriptor packets
 *   event    timestamp = difference to the last, sequence_flags = NEEDS_STATE,
 *            track_event { type, category_iids, name_iid, track_uuid, ... },
 *            interned_data { new strings }
 *
 * `epoch` counts the announcements of state.  An id that a caller has cached is
 * valid as long as `epoch` has the same value.
 *
 * Order of calls for one event (no Python code may run between 2 and 4):
 *   1  convert arguments             2  st_sequence_prepare
 *   3  intern, declare the track     4  st_sequence_write
 *
 * An END for which there is no room is stored.  It is written, with its own
 * time, as soon as there is room again, or when the sequence ends, so that a
 * loss never leaves a slice open.  The caller has to keep track of lost BEGINs.
 *
 * One thread owns a sequence.  An event that fits into the chunk needs no lock
 * and no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "intern_table.h"
#include "trace_writer.h"

enum st_event_type {
  ST_SLICE_BEGIN = 1,
  ST_SLICE_END = 2,
  ST_INSTANT = 3,
  ST_COUNTER = 4,
};

/* A track: its id and its encoded TrackDescriptor.  Its parents are described
 * before it.  The struct must outlive the call that gets it. */
struct st_track {
  uint64_t uuid;
  const uint8_t* descriptor;
  size_t descriptor_size;
  /* The parent track; NULL if the parent need not be described. */
  const struct st_track* parent;
};

enum {
  /* The number of entries in the direct-mapped cache of described tracks.  A
   * track that another track has replaced in the cache is described again. */
  ST_SEEN_TRACKS = 64,
  ST_MAX_OWED_ENDS = 4096,
  /* The largest size of an event whose fields are only ids. */
  ST_SMALL_EVENT = 64,
  /* An event starts in a chunk only if at least this number of bytes is
   * left. */
  ST_EVENT_ROOM = 512,
  /* A chunk below this size cannot hold the incremental state and events. */
  ST_MIN_STATE_CHUNK = 1024,
};

struct st_owed_end {
  uint64_t timestamp;
  /* The uuid of the END's track; 0 for the default track. */
  uint64_t track_uuid;
};

/* A track that was described, with the field TrackEvent.track_uuid of its
 * events. */
struct st_seen_track {
  uint64_t uuid;
  uint32_t epoch; /* That of the sequence when the track was described. */
  uint32_t field_size;
  uint8_t field[16]; /* Copied as a whole. */
};

/* What each event uses is in the members up to the start of the writer: after a
 * wait the processor's caches have little of them. */
struct st_sequence {
  uint64_t events_written;
  uint64_t last_timestamp;
  uint32_t epoch;
  /* The id of the chunk in which the incremental state was announced. */
  uint32_t state_chunk_id;
  /* For how many further chunks the incremental state is valid.  With 0, each
   * chunk has a state of its own.  Only small chunks have more than 0. */
  uint32_t state_span;
  bool state_valid;
  struct st_trace_writer writer;
  size_t room_limit; /* The largest room in bytes that an event may request. */
  /* The track of the thread.  It outlives the sequence. */
  const struct st_track* thread_track;
  struct st_intern_table interned;
  struct st_seen_track seen_tracks[ST_SEEN_TRACKS];
  struct st_owed_end* owed;
  uint32_t owed_count, owed_capacity;
  uint64_t events_lost, ends_forgotten;
};

/* One event.  An id of 0 and an empty field are not written. */
struct st_event {
  enum st_event_type type;
  uint64_t timestamp;
  /* Whether the caller chose the timestamp, which may be an earlier time. */
  bool explicit_timestamp;
  uint32_t category_iid;
  uint32_t name_iid;
  /* The event's name, which is written inline if name_iid is 0. */
  const char* name;
  size_t name_size;
  uint64_t track_uuid;
  const uint8_t* fields; /* Further encoded fields of the TrackEvent message. */
  size_t fields_size;
  const uint8_t* interned; /* Encoded entries of the packet's InternedData. */
  size_t interned_size;
};

/* Initialises a sequence of track events.  Returns false when out of writer
 * ids. */
bool st_sequence_init(struct st_sequence* s, struct st_arbiter* arbiter,
                      uint32_t target_buffer, enum st_exhausted_policy policy,
                      const struct st_track* thread_track);
/* Writes the stored ENDs, returns the sequence's chunk to the arbiter and frees
 * the sequence's memory. */
void st_sequence_destroy(struct st_sequence* s);

/* Writes the field TrackEvent.track_uuid. */
static inline uint8_t* st_put_track_uuid(uint8_t* p, uint64_t uuid) {
  *p++ = 11 << 3;
  return st_put_id(p, uuid);
}

/* Returns the index of a track in the cache `seen_tracks`. */
static inline size_t st_seen_slot(uint64_t uuid) {
  return (uuid * 0x9E3779B97F4A7C15u) >> 58;
}

/* Returns whether the track was described since the incremental state was
 * announced. */
static inline bool st_sequence_has_track(const struct st_sequence* s,
                                         uint64_t uuid) {
  const struct st_seen_track* seen = &s->seen_tracks[st_seen_slot(uuid)];
  return seen->uuid == uuid && seen->epoch == s->epoch;
}

/* Writes the field TrackEvent.track_uuid; nothing if the uuid is 0.  Needs room
 * for 16 bytes, and returns the end of the field's 11 bytes at most. */
static inline uint8_t* st_put_track(const struct st_sequence* s, uint8_t* p,
                                    uint64_t uuid) {
  if (!uuid)
    return p;
  const struct st_seen_track* seen = &s->seen_tracks[st_seen_slot(uuid)];
  if (seen->uuid != uuid)
    return st_put_track_uuid(p, uuid);
  memcpy(p, seen->field, sizeof seen->field);
  return p + seen->field_size;
}

static inline bool st_sequence_is_current(const struct st_sequence* s) {
  return s->state_valid &&
         s->writer.chunk_id - s->state_chunk_id <= s->state_span &&
         s->writer.cur != NULL;
}

/* Returns whether an event of usual size would make st_sequence_prepare() take
 * another chunk or announce the incremental state. */
static inline bool st_sequence_will_announce(struct st_sequence* s) {
  return !st_sequence_is_current(s) ||
         !st_trace_writer_reserve(&s->writer, s->room_limit);
}

/* Makes sure that `room` more bytes fit into the current chunk, and that the
 * incremental state was announced in this chunk.  Returns false if no event can
 * be written now. */
bool st_sequence_prepare(struct st_sequence* s, uint64_t timestamp,
                         size_t room);

/* Drops the incremental state of the sequence.  The next event announces it
 * again. */
static inline void st_sequence_clear_state(struct st_sequence* s) {
  s->state_valid = false;
}

/* Describes a track and its parents, unless they were described in this
 * epoch. */
void st_sequence_declare_track(struct st_sequence* s,
                               const struct st_track* track);

/* Writes an event of any size.  Returns false if the event was lost, and counts
 * the loss.  A lost END is stored and written later. */
bool st_sequence_write(struct st_sequence* s, const struct st_event* event);

/* Stores an END that cannot be written now.  It will be written later. */
void st_sequence_owe_end(struct st_sequence* s, uint64_t timestamp,
                         uint64_t track_uuid);

/* Writes the beginning of a small event, TracePacket { timestamp,
 * sequence_flags, track_event { ... up to `type`.  *size becomes the position
 * of track_event's length. */
static inline uint8_t* st_put_small_head(struct st_sequence* s, uint8_t* p,
                                         enum st_event_type type,
                                         uint64_t timestamp, uint8_t** size) {
  *p++ = 8 << 3; /* The field TracePacket.timestamp. */
  p = st_put_varint(p, timestamp - s->last_timestamp);
  s->last_timestamp = timestamp;
  *p++ = 13 << 3; /* sequence_flags = SEQ_NEEDS_INCREMENTAL_STATE */
  *p++ = 2;
  *p++ = 11 << 3 | ST_WIRE_DELIMITED; /* The field TracePacket.track_event. */
  *size = p++;
  *p++ = 9 << 3; /* The field TrackEvent.type. */
  *p++ = (uint8_t)type;
  return p;
}

static inline void st_finish_small(struct st_sequence* s, uint8_t* size,
                                   uint8_t* end) {
  *size = (uint8_t)(end - size - 1);
  st_trace_writer_commit(&s->writer, end);
  s->events_written++;
}

/* Completes an event that was reserved by st_trace_writer_reserve_wide.  `size`
 * is the position of track_event's length, which takes two bytes. */
static inline void st_finish_wide(struct st_sequence* s, uint8_t* size,
                                  uint8_t* end) {
  size_t event = (size_t)(end - size - 2);
  size[0] = (uint8_t)(event | 0x80);
  size[1] = (uint8_t)(event >> 7);
  st_trace_writer_commit_wide(&s->writer, end);
  s->events_written++;
}

/* Writes the ids of a small event.  An id of 0 is not written. */
static inline uint8_t* st_put_small_ids(uint8_t* p, uint32_t category_iid,
                                        uint32_t name_iid) {
  if (category_iid) {
    *p++ = 3 << 3; /* The field TrackEvent.category_iids. */
    p = st_put_varint(p, category_iid);
  }
  if (name_iid) {
    *p++ = 10 << 3; /* The field TrackEvent.name_iid. */
    p = st_put_varint(p, name_iid);
  }
  return p;
}

/* The hot path: writes an event that has only ids.  The event must not be
 * earlier than the sequence's last timestamp, and the incremental state must be
 * announced in this chunk.  Otherwise returns false, with nothing written, and
 * the caller has to use st_sequence_write(). */
static inline bool st_sequence_write_small(
    struct st_sequence* s, enum st_event_type type, uint64_t timestamp,
    uint32_t category_iid, uint32_t name_iid, uint64_t track_uuid) {
  if (!st_sequence_is_current(s) || timestamp < s->last_timestamp)
    return false;
  uint8_t* p = st_trace_writer_reserve(&s->writer, ST_SMALL_EVENT);
  if (!p)
    return false;
  uint8_t* size;
  p = st_put_small_head(s, p, type, timestamp, &size);
  p = st_put_small_ids(p, category_iid, name_iid);
  p = st_put_track(s, p, track_uuid);
  st_finish_small(s, size, p);
  return true;
}

/* The ids in the BEGIN of a call: the ids of its names, and the uuid of its
 * track (0: the default track). */
struct st_small_call {
  uint32_t category_iid, name_iid, location_iid;
  uint64_t track_uuid;
};

/* Writes the BEGIN of a call.  Conditions and result are those of
 * st_sequence_write_small. */
static inline bool st_sequence_write_call(struct st_sequence* s,
                                          uint64_t timestamp,
                                          const struct st_small_call* call) {
  if (!st_sequence_is_current(s) || timestamp < s->last_timestamp)
    return false;
  uint8_t* p = st_trace_writer_reserve(&s->writer, ST_SMALL_EVENT);
  if (!p)
    return false;
  uint8_t* size;
  p = st_put_small_head(s, p, ST_SLICE_BEGIN, timestamp, &size);
  p = st_put_small_ids(p, call->category_iid, call->name_iid);
  p = st_put_track(s, p, call->track_uuid);
  p = st_put_varint(p, 34 << 3); /* The field TrackEvent.source_location_iid. */
  p = st_put_varint(p, call->location_iid);
  st_finish_small(s, size, p);
  return true;
}

/* The size of a block.  A block is an event without its time, encoded once for
 * many calls. */
enum { ST_BLOCK_BYTES = 23 };

struct st_event_block {
  uint8_t size;
  uint8_t bytes[ST_BLOCK_BYTES];
};

/* Encodes the BEGIN of a call as a block, with the ids of the call's name and
 * source location.  Returns false if the BEGIN is too long for a block. */
bool st_make_call_block(struct st_event_block* block, uint32_t category_iid,
                        uint32_t name_iid, uint32_t location_iid);

/* A function.  The interning ids in the block of its calls stand for these
 * texts. */
struct st_function {
  const char *name, *file;
  size_t name_size, file_size;
  uint32_t line;
};

/* Writes the BEGIN of a call of `function`, and the interned names to which the
 * BEGIN refers.  Sets `block`, by which the next calls of the function in this
 * chunk are written.  Writes nothing and returns false in these cases: the
 * sequence has no current state, or already has an event with a later
 * timestamp; the chunk has too little room; no ids are left; the names are too
 * long. */
bool st_sequence_write_named_call(struct st_sequence* s, uint64_t timestamp,
                                  uint32_t category_iid,
                                  const struct st_function* function,
                                  struct st_event_block* block);

/* The encoded bytes of an END event on the default track, without its time. */
extern const struct st_event_block st_end_block;

/* Appends the CPU time of the thread, in microseconds, to a TrackEvent: the
 * field thread_time_absolute_us. */
static inline uint8_t* st_put_thread_time(uint8_t* p, uint64_t thread_time_us) {
  return st_put_varint(st_put_tag(p, 17, ST_WIRE_VARINT), thread_time_us);
}

/* The positions of two bytes in a block: the length of the TrackEvent, and the
 * value of TrackEvent.type. */
enum { ST_BLOCK_LENGTH = 3, ST_BLOCK_TYPE = 5 };

/* Writes the beginning of an event: its time, and then a block, whose position
 * is stored in *start.  Returns the end of the block.  Copies all bytes of the
 * block's array, because a copy of constant size is faster. */
static inline uint8_t* st_put_block(struct st_sequence* s, uint8_t* p,
                                    uint64_t timestamp,
                                    const struct st_event_block* block,
                                    uint8_t** start) {
  *p++ = 8 << 3; /* The field TracePacket.timestamp. */
  p = st_put_varint(p, timestamp - s->last_timestamp);
  s->last_timestamp = timestamp;
  memcpy(p, block->bytes, ST_BLOCK_BYTES);
  *start = p;
  return p + block->size;
}

/* Ends an event with a block at `start`.  Sets the block's length, because
 * fields may follow the block. */
static inline void st_finish_block(struct st_sequence* s, uint8_t* start,
                                   uint8_t* end) {
  start[ST_BLOCK_LENGTH] = (uint8_t)(end - start - ST_BLOCK_LENGTH - 1);
  st_trace_writer_commit(&s->writer, end);
  s->events_written++;
}

/* Writes a block, with the CPU time of the thread unless that is 0.  Conditions
 * and result are those of st_sequence_write_small. */
static inline bool st_sequence_write_block(struct st_sequence* s,
                                           uint64_t timestamp,
                                           const struct st_event_block* block,
                                           uint64_t thread_time_us) {
  if (!st_sequence_is_current(s) || timestamp < s->last_timestamp)
    return false;
  uint8_t* p = st_trace_writer_reserve(&s->writer, ST_SMALL_EVENT);
  if (!p)
    return false;
  uint8_t* start;
  p = st_put_block(s, p, timestamp, block, &start);
  if (thread_time_us)
    p = st_put_thread_time(p, thread_time_us);
  st_finish_block(s, start, p);
  return true;
}
