/* Track event sequence: encodes the events of one thread for one session.
 *
 * A sequence is a trace writer with incremental state on top: strings are
 * written once and referred to by id, timestamps are differences, the thread's
 * track is the default.  A reader can only follow if it has seen where that
 * state began.  So:
 *
 *   every chunk stands on its own
 *
 * The first packet in each chunk of a sequence clears the state and describes
 * it anew, and no event starts in a chunk whose state was not announced there.
 * Whatever is lost then (a dropped chunk, a ring that wrapped, a killed
 * process) costs exactly the events that were in it, and never a name, a
 * track or the time of another event.
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
 * `epoch` counts state announcements: an id cached by a caller is valid while
 * the epoch it was cached in is the current one.
 *
 * Order of work for one event (nothing between 2 and 4 may run Python):
 *   1  convert arguments             2  st_sequence_prepare
 *   3  intern, declare the track     4  st_sequence_write
 *
 * Ends.  An END that can't be written is owed: it is written, with its own
 * time, as soon as there is room again, so that a loss never leaves a slice
 * open.  (A lost BEGIN is remembered by whoever holds the slice.)
 *
 * One thread owns a sequence.  Nothing here locks or allocates on the way of
 * an event that fits.
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

/* A track: its id and its encoded TrackDescriptor, parents first.  Must
 * outlive the call it is passed to. */
struct st_track {
  uint64_t uuid;
  const uint8_t* descriptor;
  size_t descriptor_size;
  const struct st_track* parent; /* NULL: none to describe */
};

enum {
  ST_SEEN_TRACKS = 64, /* direct-mapped; a miss describes a track again */
  ST_MAX_OWED_ENDS = 4096,
  ST_SMALL_EVENT = 64,       /* bound of an event that has only ids */
  ST_EVENT_ROOM = 512,       /* an event starts only where so much is left */
  ST_MIN_STATE_CHUNK = 1024, /* smaller chunks can't hold state and events */
};

struct st_owed_end {
  uint64_t timestamp;
  uint64_t track_uuid; /* 0: the default track */
};

struct st_sequence {
  struct st_trace_writer writer;
  uint64_t last_timestamp;
  uint32_t epoch;
  uint32_t state_chunk_id; /* chunk in which the state was announced */
  uint32_t state_span;     /* further chunks in which it holds: 0, except where
                              chunks are too small to stand on their own */
  size_t room_limit;       /* most room that an event may ask for */
  bool state_valid;
  const struct st_track* thread_track; /* borrowed; outlives the sequence */
  struct st_intern_table interned;
  struct {
    uint64_t uuid;
    uint32_t epoch;
  } seen_tracks[ST_SEEN_TRACKS];
  struct st_owed_end* owed;
  uint32_t owed_count, owed_capacity;
  uint64_t events_written, events_lost, ends_forgotten;
};

/* One event.  Ids of 0 and empty pieces are left out. */
struct st_event {
  enum st_event_type type;
  uint64_t timestamp;
  bool explicit_timestamp; /* given by the caller: any order */
  uint32_t category_iid;
  uint32_t name_iid;
  const char* name; /* inline, where name_iid is 0 */
  size_t name_size;
  uint64_t track_uuid;
  const uint8_t* fields; /* encoded further TrackEvent fields */
  size_t fields_size;
  const uint8_t* interned; /* encoded InternedData entries */
  size_t interned_size;
};

/* False: no writer id is left. */
bool st_sequence_init(struct st_sequence* s, struct st_arbiter* arbiter,
                      uint32_t target_buffer, enum st_exhausted_policy policy,
                      const struct st_track* thread_track);
/* Returns the chunk and frees everything. */
void st_sequence_destroy(struct st_sequence* s);

/* Where a track is remembered in seen_tracks. */
static inline size_t st_seen_slot(uint64_t uuid) {
  return (uuid * 0x9E3779B97F4A7C15u) >> 58;
}

static inline bool st_sequence_is_current(const struct st_sequence* s) {
  return s->state_valid &&
         s->writer.chunk_id - s->state_chunk_id <= s->state_span &&
         s->writer.cur != NULL;
}

/* Whether st_sequence_prepare, for an event of the usual room, would take
 * another chunk or announce the state for another reason. */
static inline bool st_sequence_will_announce(struct st_sequence* s) {
  return !st_sequence_is_current(s) ||
         !st_trace_writer_reserve(&s->writer, s->room_limit);
}

/* Makes sure that `room` more bytes fit into the current chunk and that its
 * state has been announced there.  False: nothing can be written now. */
bool st_sequence_prepare(struct st_sequence* s, uint64_t timestamp,
                         size_t room);

/* Forgets the state: the next event announces it anew. */
static inline void st_sequence_clear_state(struct st_sequence* s) {
  s->state_valid = false;
}

/* Describes a track (and its parents) unless this epoch has done so. */
void st_sequence_declare_track(struct st_sequence* s,
                               const struct st_track* track);

/* Writes an event of any size.  False: lost and counted; an END is owed. */
bool st_sequence_write(struct st_sequence* s, const struct st_event* event);

/* Remembers an END that could not be written. */
void st_sequence_owe_end(struct st_sequence* s, uint64_t timestamp,
                         uint64_t track_uuid);

/* TracePacket { timestamp, sequence_flags, track_event { ... up to type: the
 * part that all small events share.  *size is where track_event's size goes. */
static inline uint8_t* st_put_small_head(struct st_sequence* s, uint8_t* p,
                                         enum st_event_type type,
                                         uint64_t timestamp, uint8_t** size) {
  *p++ = 8 << 3; /* TracePacket.timestamp */
  p = st_put_varint(p, timestamp - s->last_timestamp);
  s->last_timestamp = timestamp;
  *p++ = 13 << 3; /* sequence_flags = SEQ_NEEDS_INCREMENTAL_STATE */
  *p++ = 2;
  *p++ = 11 << 3 | ST_WIRE_DELIMITED; /* track_event */
  *size = p++;
  *p++ = 9 << 3; /* TrackEvent.type */
  *p++ = (uint8_t)type;
  return p;
}

static inline void st_finish_small(struct st_sequence* s, uint8_t* size,
                                   uint8_t* end) {
  *size = (uint8_t)(end - size - 1);
  st_trace_writer_commit(&s->writer, end);
  s->events_written++;
}

/* The ids that a small event consists of; those that are 0 are left out. */
static inline uint8_t* st_put_small_ids(uint8_t* p, uint32_t category_iid,
                                        uint32_t name_iid,
                                        uint64_t track_uuid) {
  if (category_iid) {
    *p++ = 3 << 3; /* category_iids */
    p = st_put_varint(p, category_iid);
  }
  if (name_iid) {
    *p++ = 10 << 3; /* name_iid */
    p = st_put_varint(p, name_iid);
  }
  if (track_uuid) {
    *p++ = 11 << 3; /* track_uuid */
    p = st_put_varint(p, track_uuid);
  }
  return p;
}

/* The hot path: an event made of ids alone, in time order, in a chunk whose
 * state is announced.  False: nothing happened; take the long way. */
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
  p = st_put_small_ids(p, category_iid, name_iid, track_uuid);
  st_finish_small(s, size, p);
  return true;
}

/* An event but for its time, encoded once for many. */
enum { ST_BLOCK_BYTES = 23 };

struct st_event_block {
  uint8_t size;
  uint8_t bytes[ST_BLOCK_BYTES];
};

/* The BEGIN of a call: named, and located in the source.  False: too long. */
bool st_make_call_block(struct st_event_block* block, uint32_t category_iid,
                        uint32_t name_iid, uint32_t location_iid);

/* What the ids in such a block stand for. */
struct st_function {
  const char *name, *file;
  size_t name_size, file_size;
  uint32_t line;
};

/* A call's BEGIN that says what its ids stand for, and the block of those that
 * follow: a function's first in a chunk.  False: nothing happened (no state,
 * no room, no ids, long names). */
bool st_sequence_write_named_call(struct st_sequence* s, uint64_t timestamp,
                                  uint32_t category_iid,
                                  const struct st_function* function,
                                  struct st_event_block* block);

/* An END on the default track. */
extern const struct st_event_block st_end_block;

/* As st_sequence_write_small.  Copies all bytes of a block, whatever its size:
 * that is three moves. */
static inline bool st_sequence_write_block(struct st_sequence* s,
                                           uint64_t timestamp,
                                           const struct st_event_block* block) {
  if (!st_sequence_is_current(s) || timestamp < s->last_timestamp)
    return false;
  uint8_t* p = st_trace_writer_reserve(&s->writer, ST_SMALL_EVENT);
  if (!p)
    return false;
  *p++ = 8 << 3; /* TracePacket.timestamp */
  p = st_put_varint(p, timestamp - s->last_timestamp);
  s->last_timestamp = timestamp;
  memcpy(p, block->bytes, ST_BLOCK_BYTES);
  st_trace_writer_commit(&s->writer, p + block->size);
  s->events_written++;
  return true;
}
