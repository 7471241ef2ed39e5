/* Sample packet: a sample of a stack, as a packet of a trace.
 *
 *   ST_PERF_SAMPLE    TracePacket.perf_sample:   pid, tid, callstack
 *   ST_STACK_SAMPLE   TracePacket.stack_sample:  {pid, tid}, callstack, weight
 *
 * Readers of Perfetto v58 and later know both, older ones the first only.  The
 * callstack is a number of the packet sequence's interned data.  The weight is
 * what the sample stands for, in ns; the sequence's defaults say that of all
 * samples in the first form. */
#pragma once

#include <stdint.h>

enum st_sample_form { ST_PERF_SAMPLE, ST_STACK_SAMPLE };

/* The largest size of a packet. */
enum { ST_SAMPLE_PACKET_BYTES = 96 };

struct st_sample {
  enum st_sample_form form;
  /* The time since the sequence's previous packet. */
  uint64_t delta_us;
  uint32_t sequence_id; /* 0: the packet has none. */
  uint32_t pid, tid;
  uint32_t callstack;
  uint64_t weight_ns;
};

/* Writes the packet, as a field of a Trace.  Returns its end. */
uint8_t* st_put_sample_packet(uint8_t* to, const struct st_sample* sample);
