#include "trace_scan.h"

#include "data_loss.h"
#include "decoder.h"
#include "fields.h"

enum { PACKET_TAG = 0x0a }; /* The encoded tag of the field Trace.packet. */

static void scan_interned(struct st_trace_scan* s,
                          const struct st_field* data) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data->data, data->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_INTERNED_DATA_LOG_MESSAGE_BODY)
      s->log_texts++;
    if (f.number == ST_FIELD_INTERNED_DATA_SOURCE_LOCATIONS &&
        f.wire_type == ST_WIRE_DELIMITED && s->on_location)
      s->on_location(s->context, f.data, f.size);
  }
}

/* Returns whether a message's field `number` is the uuid of a track of notes. */
static bool is_of_notes(const struct st_trace_scan* s,
                        const struct st_field* message, uint32_t number) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, message->data, message->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == number && f.wire_type != ST_WIRE_DELIMITED &&
        f.value >> 32 == s->notes)
      return true;
  }
  return false;
}

static void scan_event(struct st_trace_scan* s, const struct st_field* event) {
  s->track_events++;
  if (s->on_note && is_of_notes(s, event, ST_FIELD_TRACK_EVENT_TRACK_UUID))
    s->on_note(s->context, event->data, event->size);
}

static void scan_descriptor(struct st_trace_scan* s,
                            const struct st_field* track) {
  if (s->on_descriptor)
    s->on_descriptor(s->context, track->data, track->size);
  if (s->on_notes_track &&
      is_of_notes(s, track, ST_FIELD_TRACK_DESCRIPTOR_UUID))
    s->on_notes_track(s->context, track->data, track->size);
}

static void scan_packet(struct st_trace_scan* s, const uint8_t* data,
                        size_t size) {
  struct st_decoder d;
  struct st_field f;
  uint64_t time = UINT64_MAX, clock = ST_ENUM_CLOCK_SNAPSHOT_CLOCK_BOOTTIME;
  bool begins = false;
  st_decoder_init(&d, data, size);
  s->packets++;
  while (st_decoder_next(&d, &f)) {
    bool delimited = f.wire_type == ST_WIRE_DELIMITED;
    if (f.number == ST_FIELD_TRACE_PACKET_TRACK_EVENT && delimited)
      scan_event(s, &f);
    else if (f.number == ST_FIELD_TRACE_PACKET_INTERNED_DATA && delimited)
      scan_interned(s, &f);
    else if (f.number == ST_FIELD_TRACE_PACKET_TRACK_DESCRIPTOR && delimited)
      scan_descriptor(s, &f);
    else if (f.number == ST_FIELD_TRACE_PACKET_COMPRESSED_PACKETS &&
             delimited && s->on_compressed)
      s->on_compressed(s->context, f.data, f.size);
    else if (f.number == ST_FIELD_TRACE_PACKET_FTRACE_STATS && delimited &&
             s->on_ftrace_stats)
      s->on_ftrace_stats(s->context, f.data, f.size);
    else if (f.number == ST_FIELD_TRACE_PACKET_PREVIOUS_PACKET_DROPPED)
      s->drops += !delimited && (f.value & ST_LOSS_SMB_FULL);
    else if (f.number == ST_FIELD_TRACE_PACKET_TIMESTAMP && !delimited)
      time = f.value;
    else if (f.number == ST_FIELD_TRACE_PACKET_TIMESTAMP_CLOCK_ID && !delimited)
      clock = f.value;
    begins |= f.number == ST_FIELD_TRACE_PACKET_TRACE_PACKET_DEFAULTS;
  }
  bool known = clock == ST_ENUM_CLOCK_SNAPSHOT_CLOCK_BOOTTIME;
  if (begins && known && time < s->first_ns)
    s->first_ns = time;
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
