/* Trace scan: what a trace holds, at the speed of memory.
 *
 *   struct st_trace_scan scan = {.on_descriptor = f, .context = c};
 *   size_t parsed = st_trace_scan(&scan, data, size);
 *
 * Walks whole packets (0a, length, packet), counts those with a track event and
 * those before which something was dropped for want of shared memory, and passes
 * the TrackDescriptors on; it looks no deeper.  It stops at whatever is
 * no whole packet: the caller continues there with more data.  May be called
 * with any bytes; reads none outside of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct st_trace_scan {
  uint64_t packets;
  uint64_t track_events;
  uint64_t drops;
  void (*on_descriptor)(void* context, const uint8_t* data, size_t size);
  void* context;
};

/* Returns how many bytes were whole packets. */
size_t st_trace_scan(struct st_trace_scan* s, const uint8_t* data, size_t size);
