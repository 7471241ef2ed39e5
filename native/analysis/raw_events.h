/* Raw events: the events of the kernel and of Chromium as they were written, a
 * row each, with all fields as arguments.
 *
 * Problem: the tables __intrinsic_ftrace_event and __intrinsic_chrome_raw take
 * more time and memory than all others, and few queries name them.  So they are
 * made only by an importer that is asked for them:
 *
 *   is_kept false    events are counted; their first and last times are kept
 *   is_kept true     events become rows
 *
 * A query that names them reads the trace again with is_kept.  All other rows
 * have the same ids in both readings: the arguments of raw events are in a table
 * of their own, _raw_args, whose ids count from 0.  Whoever appends it to
 * __intrinsic_args adds the number of rows of that table.
 *
 * The fields of an event are named by kernel_event_fields.h, which is generated
 * for the events that Perfetto v52 knows; those of generic events by the
 * descriptors in bundles.
 *
 * Limits: fields below ST_RAW_FIELDS; ST_MAX_RAW_KINDS kinds, as the kernel
 * numbers its events with 16 bits.
 *
 * Source: Perfetto's tables; docs/analysis.md.
 */
#pragma once

#include "args.h"
#include "ftrace_events.h"
#include "sched.h"
#include "sorter.h"

enum { ST_RAW_FIELDS = 32, ST_MAX_RAW_KINDS = 65536 };

/* The names and types of an event's fields, by number.  The types are the
 * letters of kernel_event_fields.h; 0 or `-` if the field is no argument. */
struct st_raw_kind {
  st_string name, keys[ST_RAW_FIELDS];
  char types[ST_RAW_FIELDS];
};

struct st_raw_events {
  bool is_kept;   /* Set by the owner before the first piece. */
  uint64_t count; /* Of the events of both tables, kept or not. */
  /* The times of the kernel's events, in ns. */
  int64_t first_ts, last_ts;
  bool has_ts;
  struct st_map by_field; /* Machine, field in FtraceEvent to kind + 1. */
  ST_ARRAY(struct st_raw_kind) kinds;
  struct st_arg_sets arg_sets;
  struct st_arg_list args; /* Of the event that is being added. */
};

/* A switch.  `prev_utid` is the thread that stops. */
struct st_raw_switch {
  int64_t ts, prev_pid, prev_state, next_pid;
  uint32_t cpu, prev_utid;
  st_string prev_comm, next_comm;
  int32_t prev_priority, next_priority;
};

void st_raw_events_init(struct st_raw_events* r, struct st_storage* s);
/* Adds the fields of a kind of generic events, unless the kind is known:
 * GenericEventDescriptor. */
void st_raw_add_descriptor(struct st_importer* m, struct st_field descriptor);
/* Returns whether a field in FtraceEvent is an event that a descriptor names. */
bool st_raw_is_generic(uint32_t field);
/* Returns whether events of this field have rows. */
bool st_raw_is_known(const struct st_importer* m, uint32_t field);
/* Adds an event of the kernel; `utid` is its thread. */
void st_raw_kernel_event(struct st_importer* m, const struct st_kernel_event* e,
                         uint32_t utid);
void st_raw_switch(struct st_importer* m, const struct st_raw_switch* s);
/* The following functions add events in the compact form: a switch, which ends
 * the run of `last`, and a wakeup by the thread `utid`. */
void st_raw_compact_switch(struct st_importer* m, uint32_t cpu,
                           const struct st_event* e,
                           const struct st_running* last);
void st_raw_compact_waking(struct st_importer* m, uint32_t cpu,
                           const struct st_event* e, uint32_t utid);
/* Adds an event of Chromium with the arguments in r->args; they are cleared. */
void st_raw_chrome_event(struct st_importer* m, int64_t ts, const char* name,
                         uint32_t utid);
/* Stores the first and the last time of the kernel's events. */
void st_raw_finish(struct st_importer* m);
void st_raw_events_free(struct st_raw_events* r);
