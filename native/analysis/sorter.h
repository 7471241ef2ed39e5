/* Sorter: queues of events, which are parsed in the order of their time.
 *
 * Problem: the writers of a trace, and the kernel's buffers of each CPU, are
 * sorted, or nearly; the trace is not.  Events of the same time have to be
 * parsed in Perfetto's order, because it decides which ids rows get.
 *
 *   packets        10  40           each queue is sorted by time, then merged:
 *   track events   20  30  40       the queue that begins first is parsed up to
 *   CPU 0          15  25           the time at which another one begins
 *
 * Queues of equal time are parsed in the order of their numbers.
 */
#pragma once

#include "string_pool.h"

/* Packets, track events and events of JSON have one queue each.  The others exist for each
 * CPU: events of the kernel, and those in the compact form. */
enum st_queue_kind {
  ST_QUEUE_PACKETS,
  ST_QUEUE_EVENTS,
  ST_QUEUE_JSON,
  ST_QUEUE_FTRACE,
  ST_QUEUE_SWITCH,
  ST_QUEUE_WAKING,
  ST_QUEUE_KINDS,
};

struct st_event {
  int64_t ts;
  union {
    struct {
      const uint8_t* data; /* A packet, or an event. */
      union {
        const double* counters; /* The values of a track event's counters. */
        int64_t rank; /* Of an event of JSON: its order among equal times. */
      };
    };
    struct { /* A switch or wakeup of a thread in the compact form. */
      int64_t state;
      uint32_t pid;
      st_string comm;
    };
  };
  uint32_t size; /* Of the data; the common flags of a compact wakeup. */
  union {
    uint32_t generation; /* Of a track event, or an event of the kernel. */
    uint32_t field;      /* Of a packet: its field in TracePacket. */
    int32_t priority;    /* Of a switch in the compact form. */
  };
};

typedef ST_ARRAY(struct st_event) st_event_list;

struct st_queue {
  st_event_list events;
  uint32_t next; /* The first event that has not been parsed. */
  uint32_t cpu;
  enum st_queue_kind kind;
};

struct st_sorter {
  bool has_ranks; /* Events of JSON are sorted by their ranks, too. */
  ST_ARRAY(struct st_queue) queues;
  ST_ARRAY(uint32_t) by_cpu[ST_QUEUE_KINDS]; /* Numbers of queues. */
  ST_ARRAY(uint32_t) heap; /* Queues with events, the earliest one first. */
};

/* Adds an event to a queue; cpu is 0 for kinds that have one queue. */
void st_sorter_push(struct st_sorter* s, enum st_queue_kind kind, uint32_t cpu,
                    struct st_event event);
/* Passes all events to `parse`, in the order of time. */
typedef void st_parse(void* context, const struct st_queue* queue,
                      const struct st_event* event);
void st_sorter_run(struct st_sorter* s, st_parse* parse, void* context);
void st_sorter_free(struct st_sorter* s);
