/* Event list: the events of a queue, packed, until they are parsed.
 *
 * Problem: a trace has millions of events, which wait for the end of the file.
 * Their data is often shorter than a struct that describes it.  A list keeps the
 * events in blocks of ST_BLOCK_EVENTS; each block has
 *
 *   ts      | 1000 | 1008 | ...          8 bytes per event
 *   places  | 0    | 25   | ...          where the event begins in `bytes`
 *   bytes   | head words data tail | head words data tail | ...
 *
 * head is a varint: the size of the data, and a bit that says whether there is
 * a tail.  The words are varints, too.  Data of 64 KiB or more is kept apart; its
 * address takes its place.
 *
 * Memory: the writers of a trace are often recorded one after the other, but
 * parsed in turns.  Blocks are small, so that each one has events of a short
 * time, and is freed soon.
 *
 * Life cycle: set `words` and `has_data`; add the events; get each one, and say
 * when it is done.  A block is freed when all of its events are done.
 * Limits: nearly 2^32 events; more count as exhausted memory.
 */
#pragma once

#include "string_pool.h"

enum { ST_BLOCK_EVENTS = 256, ST_EVENT_WORDS = 3 };

struct st_event {
  int64_t ts;
  const uint8_t* data; /* A packet, or an event; not aligned. */
  /* NULL, or what belongs to the data: the values of a track event's counters,
   * or the rank of a JSON event among the events of equal time.  Not aligned. */
  const uint8_t* tail;
  /* The size of the data; the state of a compact switch; the flags of a compact
   * wakeup. */
  uint32_t size;
  union {
    uint32_t words[ST_EVENT_WORDS]; /* As many as the list keeps. */
    struct {
      uint32_t generation; /* Of a packet or event, where it is needed. */
      uint32_t field;      /* Of a packet: its field in TracePacket. */
    };
    struct { /* A switch or wakeup in the compact form. */
      uint32_t pid;
      st_string comm;
      union {
        int32_t priority; /* Of a switch. */
        struct {          /* Of a wakeup. */
          uint16_t target_cpu, priority;
        } woken;
      };
    };
  };
};

struct st_event_block {
  uint32_t done; /* The number of events that are done. */
  ST_ARRAY(uint8_t) bytes;
  struct st_byte_arena large;
  int64_t ts[ST_BLOCK_EVENTS];
  uint32_t places[ST_BLOCK_EVENTS];
};

struct st_event_list {
  ST_ARRAY(struct st_event_block*) blocks; /* NULL where it was freed. */
  uint32_t size;                           /* The number of events. */
  uint8_t words;                           /* How many words an event has. */
  bool has_data;                           /* Or only a size. */
};

/* Adds an event, and copies its data, and its tail of `tail_size` bytes. */
void st_event_list_add(struct st_event_list* l, const struct st_event* e,
                       size_t tail_size);
/* Returns an event.  Its data and tail are valid until its block is freed. */
struct st_event st_event_list_get(const struct st_event_list* l, uint32_t i);
static inline int64_t st_event_list_ts(const struct st_event_list* l,
                                       uint32_t i) {
  return l->blocks.data[i / ST_BLOCK_EVENTS]->ts[i % ST_BLOCK_EVENTS];
}
/* Begins to load an event that will be needed soon. */
static inline void st_event_list_prefetch(const struct st_event_list* l,
                                          uint32_t i) {
  const struct st_event_block* block = l->blocks.data[i / ST_BLOCK_EVENTS];
  __builtin_prefetch(block->bytes.data + block->places[i % ST_BLOCK_EVENTS]);
}
/* Says that an event is not needed any more.  Returns whether its block was
 * freed. */
bool st_event_list_done(struct st_event_list* l, uint32_t i);
void st_event_list_free(struct st_event_list* l);
