/* Sorter: queues of events, which are parsed in the order of their time.
 *
 * Problem: the events of one writer, or of one CPU, are sorted by time, or
 * nearly sorted; the events of the trace are not.  Events of the same time have
 * to be parsed in Perfetto's order, because the order decides the ids of rows.
 *
 *   packets        10  40          each queue is sorted, then all are merged:
 *   track events   20  30  40      the queue with the earliest event is parsed
 *   CPU 0          15  25          up to the time of the next queue's event
 *
 * Events of equal time are parsed in the order of their queues' numbers.
 */
#pragma once

#include "string_pool.h"

/* The queues of a source (machines.h): packets, track events, events of JSON and
 * FXT, and lines of text have one queue each.  Kernel events have queues for
 * each CPU: one for events, and one each for the compact forms of switches and
 * wakeups. */
enum st_queue_kind {
  ST_QUEUE_PACKETS,
  ST_QUEUE_EVENTS,
  ST_QUEUE_JSON,
  ST_QUEUE_SYSTRACE,
  ST_QUEUE_FXT,
  ST_QUEUE_FTRACE,
  ST_QUEUE_SWITCH,
  ST_QUEUE_WAKING,
  ST_QUEUE_KINDS,
};

struct st_event {
  int64_t ts;
  union {
    const uint8_t* data; /* A packet, or an event. */
    struct {             /* A switch or wakeup in the compact form. */
      uint32_t pid;
      st_string comm;
    };
  };
  /* The size of the data; the state of a compact switch; the flags of a compact
   * wakeup. */
  uint32_t size : 31;
  /* The data is followed by a tail: the values of a track event's counters, the
   * generation of a packet that needs it, or the rank of a JSON event among the
   * events of equal time. */
  uint32_t has_tail : 1;
  union {
    uint32_t generation; /* Of a track event, or an event of the kernel. */
    uint32_t field;      /* Of a packet: its field in TracePacket. */
    int32_t priority;    /* Of a switch in the compact form. */
    struct {             /* Of a wakeup in the compact form. */
      uint16_t target_cpu, priority;
    } woken;
  };
};

/* Returns the tail of an event's data; NULL if there is none. */
static inline const void* st_event_tail(const struct st_event* e) {
  return e->has_tail ? e->data + (((size_t)e->size + 7) & ~(size_t)7) : NULL;
}

/* Events are kept in blocks with their data.  A block is freed when its events
 * have been parsed. */
enum { ST_BLOCK_EVENTS = 8192 };

struct st_event_block {
  struct st_byte_arena bytes;
  uint32_t parsed;
  struct st_event events[ST_BLOCK_EVENTS];
};

struct st_queue {
  ST_ARRAY(struct st_event_block*) blocks;
  uint32_t* order; /* Numbers of the events, by time; NULL if sorted. */
  uint32_t size;
  uint32_t next;  /* The first event that has not been parsed. */
  uint32_t freed; /* The number of freed blocks. */
  uint32_t cpu, source;
  enum st_queue_kind kind;
};

/* The numbers of the queues of a source. */
struct st_source_queues {
  uint32_t first; /* Of the kinds that have one queue. */
  ST_ARRAY(uint32_t) by_cpu[ST_QUEUE_KINDS];
};

struct st_sorter {
  bool has_ranks; /* Events of JSON are sorted by their ranks, too. */
  ST_ARRAY(struct st_queue) queues;
  ST_ARRAY(struct st_source_queues) sources;
  uint32_t source;         /* The number of the source that is being read. */
  ST_ARRAY(uint32_t) heap; /* Queues with events, the earliest one first. */
};

/* Adds an event to a queue, and copies its data; cpu is 0 for kinds that have
 * one queue. */
void st_sorter_push(struct st_sorter* s, enum st_queue_kind kind, uint32_t cpu,
                    struct st_event event);
/* The same, with a tail; `tail` is NULL if there is none. */
void st_sorter_push_with(struct st_sorter* s, enum st_queue_kind kind,
                         uint32_t cpu, struct st_event event, const void* tail,
                         size_t tail_size);
/* The next events are those of a source.  The number of a new source must be
 * that of the last one plus 1. */
void st_sorter_use_source(struct st_sorter* s, uint32_t source);
/* Passes all events to `parse`, in the order of time. */
typedef void st_parse(void* context, const struct st_queue* queue,
                      const struct st_event* event);
void st_sorter_run(struct st_sorter* s, st_parse* parse, void* context);
void st_sorter_free(struct st_sorter* s);
