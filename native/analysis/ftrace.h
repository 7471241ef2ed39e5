/* Kernel events: reads the bundles of Perfetto's ftrace data source.
 *
 * A bundle holds events of one CPU.  Switches and wakeups may be in a compact
 * form, with an array for each field.  Bundles are read in the order of the
 * file; events are parsed in the order of their timestamps.
 *
 *   bundle ─> ftrace_reader.c ─> queues per CPU ─> ftrace.c ─> sched, tracks, …
 *
 * The kernel has a buffer for each CPU, and these may begin at different times.
 * Events before the latest of these times are dropped, because events of other
 * CPUs are missing; a compact switch still sets the thread that its CPU runs.
 * Events before the start of the recording are dropped, too, unless the config
 * preserves the earlier contents of the buffers (preserve_ftrace_buffer).
 *
 * Each event also becomes a row as it was written, if that is asked for:
 * raw_events.h.
 *
 * Limits: CPUs below ST_MAX_CPUS.
 */
#pragma once

#include "ftrace_events.h"
#include "storage.h"

struct st_ftrace {
  bool has_start, preserves_buffer, has_latest_start;
  /* Times in ns.  Events before `drop_before` are ignored.  Those before
   * `drop_softly_before` only add their threads and CPUs. */
  int64_t drop_before, drop_softly_before, latest_start;
  struct st_map seen_cpus; /* By ucpu. */
  struct st_map failed_sequences;
  uint64_t bundle_errors, missing_ids, before_start, unread;
  uint64_t switches_skipped, wakings_skipped, compact_errors, descriptor_errors;
  uint64_t mismatched_switches, invalid_states, atrace_errors, setup_errors;
};

void st_ftrace_free(struct st_ftrace* f);
