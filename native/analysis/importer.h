/* Importer: reads a trace of TracePackets, of JSON, or of FXT, into tables.
 *
 * Problem: analysis needs columns; a trace is a stream of packets of several
 * writers, with interned strings, several clocks, and events out of order.
 *
 *   bytes ─> packets ─> state, clocks ─> events, sorted ─> tracks, slices, args
 *            feed()                      finish()          tables
 *
 * Life cycle:
 *
 *   struct st_importer* m = st_importer_new();
 *   st_importer_feed(m, bytes, size);         any number of pieces, of any size
 *   st_importer_finish(m);
 *   ... m->storage.tables ...
 *   st_importer_free(m);
 *
 * The first piece decides whether the trace is JSON (json_reader.h), FXT (fxt.h)
 * or text of the kernel (systrace.h).
 *
 * Several files, as in an archive, become one trace: st_importer_next_file
 * between them.  Processes, threads and the machine's clocks are those of all
 * files; writers, their clocks, and the uuids of tracks belong to their file.
 * Data that a relay has sent from other machines: machines.h.
 * The first file's clock is the clock of the trace.  JSON comes after the files
 * of packets, whose clocks it can't change.
 *
 * Events are parsed in finish(), in the order of their timestamps; events
 * of the same time, in the order of the file.  Descriptors apply to the whole
 * trace.
 *
 * Damage: a trace that is cut off is read up to the cut.  After a malformed
 * field, reading continues after the next marker (core/tokenizer.h).  The bytes
 * that aren't read are counted in both cases.  The table stats also counts what
 * is invalid, and what the importer doesn't read yet (`unread_packets`).
 *
 * Memory: the events are kept until they are parsed (event_list.h).  They take
 * about as much as the file, up to one and a half times for short events.  The
 * tables take the memory of parsed events.
 * Limits: packets of at most 256 MiB.  feed() and finish() return false when
 * memory is exhausted; the importer can only be freed then.
 *
 * Source: docs/analysis.md.
 */
#pragma once

#include <stdatomic.h>

#include "arg_path.h"
#include "async_tracks.h"
#include "core/decoder.h"
#include "core/tokenizer.h"
#include "deobfuscation.h"
#include "flows.h"
#include "ftrace.h"
#include "fxt.h"
#include "heap_graphs.h"
#include "heap_profiles.h"
#include "json_import.h"
#include "machines.h"
#include "raw_events.h"
#include "sample_hits.h"
#include "sched.h"
#include "schemas.h"
#include "sequences.h"
#include "slices.h"
#include "sorter.h"
#include "stacks.h"
#include "systrace.h"
#include "tracks.h"

/* Inflates a zlib stream.  Returns the bytes, which free() frees; NULL if the
 * stream is damaged. */
typedef uint8_t* st_inflate(void* context, const uint8_t* data, size_t size,
                            size_t* out_size);

struct st_counts {
  uint64_t packets, track_events, truncated_bytes, unread_packets;
  uint64_t skipped_packets, tokenizer_errors, parser_errors;
  uint64_t clock_failures, invalid_snapshots, negative_timestamps;
  uint64_t unread_fields, unknown_fields, unread_events,
      previous_packet_dropped, undecodable_packets, undecodable_arguments;
  uint64_t proc_stat_unknown, write_into_file;
  uint64_t write_into_file_no_flush;
  uint64_t meminfo_unknown, vmstat_unknown, psi_unknown, invalid_cpu_times;
};

/* The tracks of the counters of perf samples on a CPU. */
enum { ST_MAX_FOLLOWERS = 16 };

struct st_perf_cpu {
  uint32_t timebase, follower_count, followers[ST_MAX_FOLLOWERS];
};

struct st_perf {
  struct st_map sessions;  /* Sequence to session + 1. */
  struct st_keys cpu_keys; /* By session and CPU. */
  ST_ARRAY(struct st_perf_cpu) cpus;
  struct st_sample_hits hits;
  /* The generation of the last sample, + 1, and the period of its samples. */
  uint32_t generation;
  struct st_sample_period period;
};

struct st_importer {
  atomic_uint references;
  /* Set by the owner.  If it is NULL, compressed packets are counted as
   * unread. */
  st_inflate* inflate;
  void* inflate_context;
  struct st_tokenizer tokenizer;
  struct st_byte_arena arena;
  struct st_storage storage;
  struct st_arg_sets arg_sets;
  struct st_arg_path path; /* Of the arguments that are added. */
  struct st_machines machines;
  struct st_machine* machine; /* Of the source in use. */
  uint32_t file;              /* The number of the file that is being read. */
  struct st_sequences sequences;
  struct st_processes processes;
  struct st_tracks tracks;
  struct st_async_tracks async_tracks;
  struct st_slices slices;
  struct st_flows flows;
  struct st_counts counts;
  struct st_sorter sorter;
  ST_ARRAY(struct st_event) deferred; /* Packets whose clock is unknown. */
  struct st_sched sched;
  struct st_ftrace ftrace;
  struct st_raw_events raw;
  /* Threads of other kernels than Linux whose state after their last run is
   * unknown: utid to row of sched_slice + 1. */
  struct st_map unknown_ends;
  struct st_schemas schemas;
  struct st_stacks stacks;
  struct st_perf perf;
  struct st_heap_profiles heap_profiles;
  struct st_heap_graphs heap_graphs;
  struct st_deobfuscation deobfuscation;
  struct st_json_import json;
  struct st_systrace systrace;
  struct st_fxt fxt;
  int64_t latest_ts;
  struct st_texts {
    st_string annotation; /* The type DebugAnnotation. */
  } texts;
  struct st_map metadata; /* Key with one value to row + 1. */
  struct st_map stats;    /* Statistic, index to row + 1. */
  int64_t tracing_started;
  uint32_t chrome_bundles, chrome_metadata; /* Packets with metadata. */
  const char* piece; /* The piece of a text that is being read. */
  size_t piece_size;
  uint64_t fed_bytes;
  enum st_file_kind {
    ST_FILE_UNKNOWN,
    ST_FILE_PACKETS,
    ST_FILE_JSON,
    ST_FILE_SYSTRACE,
    ST_FILE_FXT
  } kind;           /* Of the file that is read. */
  bool has_packets; /* A file had packets. */
  struct st_field trace_stats;
  bool has_trigger, has_clone_trigger;
  /* What the packets of the service say about the end of the file. */
  struct st_passes {
    bool is_ours;     /* Stretto's service has written it. */
    bool is_streamed; /* While it recorded. */
    bool has_begin, has_end;
    bool is_inside; /* The packets that were read last are within a pass. */
  } passes;
  bool is_cut_off; /* The end of the trace is missing; also set by the owner. */
  bool is_nested;  /* Inside a compressed packet. */
  bool failed, finished;
};

struct st_importer* st_importer_new(void);
bool st_importer_feed(struct st_importer* m, const void* data, size_t size);
/* Ends a file of an archive; the next piece begins another file. */
bool st_importer_next_file(struct st_importer* m);
bool st_importer_finish(struct st_importer* m);
/* st_importer_keep adds a reference.  st_importer_free drops one, and frees the
 * importer with the last one.  Any thread may call them. */
void st_importer_keep(struct st_importer* m);
void st_importer_free(struct st_importer* m);

/* Parts of the importer, for its own files. */

/* What is read or parsed next is of this source: importer.c. */
void st_use_source(struct st_importer* m, uint32_t source);
/* Reads a packet: packets.c. */
void st_read_packet(struct st_importer* m, const uint8_t* data, size_t size);
/* Reads a part of a stream of packets: importer.c. */
void st_read_packets(struct st_importer* m, const void* data, size_t size);
/* Reads the packets whose clock was unknown: packets.c. */
void st_read_deferred(struct st_importer* m);
/* Checks a track event and queues it; *ts is NULL without a timestamp:
 * event_reader.c. */
void st_read_event(struct st_importer* m, uint32_t sequence, const int64_t* ts,
                   const uint8_t* data, size_t size);
/* Parses a track event: events.c. */
void st_parse_event(struct st_importer* m, const struct st_event* e);
/* Adds the arguments of a track event, which has these parts (event_parts.h);
 * utid is its thread, or ST_NO_ROW.  source_id is the id of an asynchronous
 * slice, or NULL: event_args.c. */
void st_parse_event_args(struct st_importer* m, const struct st_event* e,
                         uint32_t parts, uint32_t utid,
                         const int64_t* source_id, struct st_arg_list* args);
/* Adds the arguments of a debug annotation: annotations.c. */
void st_parse_annotation(struct st_importer* m, uint32_t generation,
                         struct st_field annotation, struct st_arg_list* args);
/* The same, below a path; the annotation's name is appended to the path. */
void st_parse_named_annotation(struct st_arg_path* p,
                               struct st_field annotation);
/* Adds the fields of a message as arguments below a path: typed_args.c. */
void st_parse_typed_args(struct st_arg_path* p, st_string type,
                         struct st_field message);
/* Adds the fields of a track event that are arguments: typed_args.c. */
void st_parse_event_fields(struct st_importer* m, const struct st_event* e,
                           struct st_arg_list* args);
/* Adds an interned source location as arguments; their keys begin with
 * `prefix`.  Returns false if it is missing: event_args.c. */
bool st_add_location_args(struct st_importer* m, uint32_t generation,
                          uint64_t iid, const char* prefix,
                          struct st_arg_list* args);
/* Parses a packet other than a track event: system_packets.c. */
void st_parse_packet(struct st_importer* m, const struct st_event* e);
/* Adds a row to the table counter; `row` is the track's.  Returns the counter's
 * row: events.c. */
uint32_t st_add_counter(struct st_importer* m, int64_t ts, uint32_t row,
                        double value);
/* Adds a value of JSON, and the values in it, as arguments below a path:
 * json_args.c. */
void st_add_json(struct st_arg_path* p, struct st_json value);
/* These functions read a JSON trace: they queue the events of a piece, end a
 * file, parse a queued event, and finish after the last event: json_events.c. */
void st_read_json(struct st_importer* m, const char* data, size_t size);
void st_parse_json(struct st_importer* m, const struct st_event* e);
void st_end_json(struct st_importer* m);
void st_finish_json(struct st_importer* m);
/* Reads a bundle of kernel events, and queues the events.  `sequence` is the
 * packet's sequence id, `index` the sequence's index: ftrace_reader.c. */
void st_read_ftrace(struct st_importer* m, uint32_t sequence, uint32_t index,
                    const uint8_t* data, size_t size);
/* Reads FtraceStats: ftrace_stats.c. */
void st_read_ftrace_stats(struct st_importer* m, uint32_t sequence,
                          const uint8_t* data, size_t size);
/* Parses a kernel event: ftrace.c. */
void st_parse_ftrace(struct st_importer* m, const struct st_queue* queue,
                     const struct st_event* e);
/* Parses a kernel event whose fields have been read from text: ftrace.c. */
void st_parse_kernel_fields(struct st_importer* m,
                            const struct st_kernel_event* e,
                            const struct st_field* fields);
/* Parses a text in the form of Android's atrace: atrace.c. */
void st_parse_atrace(struct st_importer* m, int64_t ts, uint32_t tid,
                     const uint8_t* text, size_t size);
/* Parses the same from the fields of an event of the kernel; the phase is B, E,
 * C or I: atrace.c. */
void st_parse_kernel_mark(struct st_importer* m, int64_t ts, uint32_t tid,
                          char phase, uint32_t pid, struct st_field name,
                          int64_t value);
/* Sets the counter of the screen's state: atrace.c. */
void st_set_screen_state(struct st_importer* m, int64_t ts, double value);
/* Returns the row of a device's counter track.  The name of the track is the
 * device's name and `suffix`: sys_stats.c. */
uint32_t st_device_counter_row(struct st_importer* m, const char* type,
                               const char* suffix, struct st_field device);
/* Parses a submessage of a packet. */
typedef void (*st_part_parser)(struct st_importer* m, struct st_field part);
/* Parses a process tree: all processes, and then all threads.  The field numbers
 * of ProcessTree and GenericKernelProcessTree are the same: system_packets.c. */
void st_parse_tree(struct st_importer* m, const struct st_event* e,
                   st_part_parser parse_process, st_part_parser parse_thread);
/* Parses the packets of kernels other than Linux: generic_kernel.c. */
void st_parse_generic_kernel(struct st_importer* m, const struct st_event* e);
/* Parses SysStats: sys_stats.c. */
void st_parse_sys_stats(struct st_importer* m, const struct st_event* e);
/* Returns the time of a StreamingProfilePacket in the trace, and adds its
 * duration to the time of its sequence: profiles.c. */
int64_t st_streaming_profile_time(struct st_importer* m, uint32_t sequence,
                                  const uint8_t* data, size_t size);
/* These functions parse packets of profilers: profiles.c, perf_samples.c,
 * heap_profiles.c. */
void st_parse_profile(struct st_importer* m, const struct st_event* e);
void st_parse_perf_sample(struct st_importer* m, const struct st_event* e,
                          uint32_t generation);
void st_parse_heap_profile(struct st_importer* m, const struct st_event* e,
                           uint32_t generation);
/* These functions parse packets of heap graphs, and finish after the last one:
 * heap_graphs.c. */
enum { /* Fields of TracePacket. */
       ST_FIELD_PACKAGES_LIST = 47,
       ST_FIELD_HEAP_GRAPH = 56,
       ST_FIELD_DEOBFUSCATION_MAPPING = 64,
       ST_FIELD_INITIAL_DISPLAY_STATE = 70,
};
void st_parse_heap_graph(struct st_importer* m, const struct st_event* e,
                         uint32_t generation);
void st_finish_heap_graphs(struct st_importer* m);
/* Fills the table of flame graphs, when the names are known:
 * heap_flamegraph.c. */
void st_heap_flamegraphs(struct st_importer* m);
/* These functions keep a DeobfuscationMapping, parse a PackagesList, and set the
 * original names at the end of the trace: deobfuscation.c. */
void st_parse_deobfuscation(struct st_importer* m, const struct st_event* e);
void st_parse_packages(struct st_importer* m, const struct st_event* e);
void st_finish_deobfuscation(struct st_importer* m);
/* Returns the callsite of an interned stack of a process; ST_NO_ROW if it is
 * empty or invalid: interned_stacks.c. */
uint32_t st_interned_stack(struct st_importer* m, uint32_t generation,
                           uint32_t upid, uint64_t iid);
/* Returns the row of an interned mapping of the sequence's process; ST_NO_ROW
 * if it is invalid: interned_stacks.c. */
uint32_t st_sequence_mapping(struct st_importer* m, uint32_t generation,
                             uint64_t iid);
/* Chromium's packets: chrome_packets.c.  These functions return the name of a
 * type of process (0 if it is unknown), add what a descriptor says of a process,
 * parse ChromeEventBundle, and read ChromeMetadataPacket. */
st_string st_chrome_process_name(struct st_importer* m, uint64_t type);
void st_parse_chrome_process(struct st_importer* m, uint32_t upid,
                             struct st_field descriptor);
void st_parse_chrome_events(struct st_importer* m, const struct st_event* e);
void st_read_chrome_metadata(struct st_importer* m, struct st_field packet);
/* Reads SystemInfo and CpuInfo: system_info.c. */
void st_read_system_info(struct st_importer* m, const uint8_t* data,
                         size_t size);
void st_read_cpu_info(struct st_importer* m, const uint8_t* data, size_t size);
/* Sets the value of a statistic; `index` is ST_NO_INDEX if it has none:
 * totals.c. */
enum { ST_NO_INDEX = -1 };
void st_set_stat(struct st_importer* m, const char* name, int64_t index,
                 const char* severity, const char* source, int64_t value);
/* Adds to the value of a statistic. */
void st_increment_stat(struct st_importer* m, const char* name, int64_t index,
                       const char* severity, const char* source, int64_t value);
/* Adds 1 to a statistic that counts errors of the trace. */
static inline void st_count_error(struct st_importer* m, const char* name) {
  st_increment_stat(m, name, ST_NO_INDEX, "error", "trace", 1);
}
/* Returns the value of a statistic; 0 if it has not been set. */
int64_t st_get_stat(struct st_importer* m, const char* name, int64_t index);
/* These functions read packets of the tracing service: service_packets.c. */
void st_read_service_event(struct st_importer* m, int64_t ts,
                           struct st_field event);
void st_read_config(struct st_importer* m, struct st_field config);
/* Ends a file.  Returns whether the service has written more than there is. */
bool st_end_passes(struct st_importer* m);
/* Sums, for each buffer, the losses of its sequences before this packet. */
void st_count_losses(struct st_importer* m, struct st_field trace_stats);
void st_parse_trigger(struct st_importer* m, const struct st_event* e);
/* Fills the tables stats and metadata: totals.c. */
void st_add_totals(struct st_importer* m);
void st_add_metadata(struct st_importer* m, const char* name, bool is_multi,
                     struct st_cell number, st_string text);
/* Adds metadata whose name is the program's own.  A name may have several rows.
 */
void st_add_own_metadata(struct st_importer* m, const char* name,
                         struct st_cell number, st_string text);
