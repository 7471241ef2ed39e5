/* Trace scan: counts and finds packets in a trace without decoding them.
 *
 *   struct st_trace_scan scan = {.on_descriptor = f, .context = c};
 *   size_t parsed = st_trace_scan(&scan, data, size);
 *
 * It walks over complete packets (0a, length, packet).  It counts packets with
 * a track event, and packets that mark a loss because shared memory was full.
 * It calls functions for TrackDescriptors, source locations, compressed
 * packets, FtraceStats and notes.  It stops at the first incomplete packet,
 * where the caller continues with more data.  It accepts any bytes, and reads
 * none outside of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct st_trace_scan {
  uint64_t packets;
  uint64_t track_events;
  uint64_t drops;
  uint64_t log_texts; /* The interned texts of log messages. */
  /* The events of a sequence can only be read after a packet that starts the
   * incremental state of the sequence.  This is the boot time in ns of the
   * earliest such packet in the trace; UINT64_MAX if there is none. */
  uint64_t first_ns;
  /* Called for TrackDescriptors, for packets that are compressed by deflate and
   * for interned SourceLocations; may be NULL. */
  void (*on_descriptor)(void* context, const uint8_t* data, size_t size);
  void (*on_compressed)(void* context, const uint8_t* data, size_t size);
  void (*on_location)(void* context, const uint8_t* data, size_t size);
  /* Called for FtraceStats, and for the TrackEvents and TrackDescriptors of
   * tracks whose uuids have the upper half `notes`: what data sources tell; may
   * be NULL. */
  void (*on_ftrace_stats)(void* context, const uint8_t* data, size_t size);
  void (*on_note)(void* context, const uint8_t* data, size_t size);
  void (*on_notes_track)(void* context, const uint8_t* data, size_t size);
  uint32_t notes;
  void* context;
};

/* Counts the complete packets in `data`.  Returns their total size in bytes. */
size_t st_trace_scan(struct st_trace_scan* s, const uint8_t* data, size_t size);
