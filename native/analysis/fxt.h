/* FXT import: the state of the import of a trace in Fuchsia's format.
 *
 *   records ──> tables of the provider    strings, threads, the clock's rate
 *          ├──> names of processes and threads
 *          ├──> packets in blobs
 *          └──> events, resolved ──> sorter ──> slices, counters, flows, states
 *
 * A record refers to tables that later records change.  So events are queued
 * with their strings and threads instead of the references, and with times in
 * ns.
 *
 * As in Perfetto: ids of processes and threads are cut to 32 bits; the providers
 * share one clock, that of the trace; flows belong to the innermost open slice
 * of their thread.  Records of user space objects, log messages and profiles
 * are counted as unread.
 */
#pragma once

#include "fxt_records.h"
#include "string_pool.h"

struct st_importer;
struct st_event;

enum { ST_FXT_MAX_ARGUMENTS = 15 };

struct st_fxt_thread {
  uint64_t pid, tid;
};

/* An event of the queue. */
enum st_fxt_kind {
  ST_FXT_INSTANT,
  ST_FXT_COUNTER,
  ST_FXT_BEGIN,
  ST_FXT_END,
  ST_FXT_COMPLETE,
  ST_FXT_ASYNC_BEGIN,
  ST_FXT_ASYNC_INSTANT,
  ST_FXT_ASYNC_END,
  ST_FXT_FLOW_BEGIN,
  ST_FXT_FLOW_STEP,
  ST_FXT_FLOW_END,
  ST_FXT_SWITCH, /* The threads are the old and the new one. */
  ST_FXT_WAKE,
};

struct st_fxt_argument {
  st_string name;
  uint32_t type;
  uint64_t value; /* Bits of the number, or a st_string. */
};

struct st_fxt_event {
  enum st_fxt_kind kind;
  uint32_t argument_count;
  struct st_fxt_thread thread, next;
  st_string category, name;
  uint64_t id; /* Of a counter, an asynchronous slice or a flow. */
  int64_t end; /* Of a complete slice. */
  /* Of a switch or wakeup.  The idle thread of a CPU has `idle_weight`; in the
   * older form of a switch, no process and the priority 0. */
  bool is_legacy;
  uint32_t cpu, state;
  int32_t weight, next_weight;
  struct st_fxt_argument arguments[ST_FXT_MAX_ARGUMENTS];
};

/* The scheduling of a thread.  Rows are ST_NO_ROW if none is open. */
struct st_fxt_schedule {
  uint64_t pid, tid;
  int64_t last_ts;
  uint32_t slice, state;
};

struct st_fxt {
  bool is_used;
  struct st_fxt_reader reader;
  ST_ARRAY(uint64_t) rates; /* Ticks per second, by provider. */
  uint32_t provider;        /* Number + 1 of the current provider; 0 if none. */
  struct st_map providers;  /* Id to number + 1. */
  struct st_map strings;    /* By provider and index: st_string. */
  struct st_map thread_numbers; /* By provider and index: number + 1. */
  ST_ARRAY(struct st_fxt_thread) threads;
  struct st_map schedule_numbers; /* By tid: number + 1. */
  ST_ARRAY(struct st_fxt_schedule) schedules;
  uint64_t full_buffers; /* Reports of providers that lost records. */
};

/* These functions read a piece of a trace, end a file, and parse a queued event:
 * fxt_reader.c, fxt_events.c. */
void st_read_fxt(struct st_importer* m, const void* data, size_t size);
void st_end_fxt(struct st_importer* m);
void st_parse_fxt(struct st_importer* m, const struct st_event* e);
/* Parses a switch or a wakeup: fxt_sched.c. */
void st_fxt_schedule(struct st_importer* m, int64_t ts,
                     const struct st_fxt_event* e);
/* Returns the scheduling of a thread: fxt_sched.c. */
struct st_fxt_schedule* st_fxt_schedule_of(struct st_importer* m, uint64_t tid);
/* Counts an error of the trace; `name` is that of Perfetto's statistic:
 * fxt_reader.c. */
void st_fxt_error(struct st_importer* m, const char* name);
void st_fxt_free(struct st_fxt* f);
