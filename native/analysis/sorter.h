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

#include "event_list.h"

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

struct st_queue {
  struct st_event_list events;
  /* Numbers of the events by time, the last one first; NULL if sorted. */
  uint32_t* order;
  uint32_t next; /* The first event that has not been parsed. */
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
  /* Each time so many blocks are freed, their memory is returned to the
   * system. */
  uint32_t trim_blocks, freed_blocks;
};

/* Adds an event to a queue, and copies its data; cpu is 0 for kinds that have
 * one queue. */
void st_sorter_push(struct st_sorter* s, enum st_queue_kind kind, uint32_t cpu,
                    struct st_event event);
/* The same for an event with a tail. */
void st_sorter_push_with(struct st_sorter* s, enum st_queue_kind kind,
                         uint32_t cpu, struct st_event event, size_t tail_size);
/* The next events are those of a source.  The number of a new source must be
 * that of the last one plus 1. */
void st_sorter_use_source(struct st_sorter* s, uint32_t source);
/* Passes all events to `parse`, in the order of time. */
typedef void st_parse(void* context, const struct st_queue* queue,
                      const struct st_event* event);
void st_sorter_run(struct st_sorter* s, st_parse* parse, void* context);
void st_sorter_free(struct st_sorter* s);
