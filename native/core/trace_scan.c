#include "trace_scan.h"

#include "decoder.h"
#include "fields.h"

enum { PACKET_TAG = 0x0a }; /* Trace.packet: field 1, delimited */

static void scan_packet(struct st_trace_scan* s, const uint8_t* data,
                        size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  s->packets++;
  while (st_decoder_next(&d, &f)) {
    if (f.wire_type != ST_WIRE_DELIMITED)
      continue;
    if (f.number == ST_FIELD_TRACE_PACKET_TRACK_EVENT)
      s->track_events++;
    else if (f.number == ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR)
      s->on_descriptor(s->context, f.data, f.size);
  }
}

size_t st_trace_scan(struct st_trace_scan* s, const uint8_t* data,
                     size_t size) {
  const uint8_t* p = data;
  const uint8_t* end = data + size;
  while (p < end && *p == PACKET_TAG) {
    uint64_t length;
    const uint8_t* packet = st_get_varint(p + 1, end, &length);
    if (!packet || length > (size_t)(end - packet))
      break;
    scan_packet(s, packet, (size_t)length);
    p = packet + length;
  }
  return (size_t)(p - data);
}
