/* Builds traces for tests of the importer: packets of small messages.
 *
 *   struct message event = {0};
 *   add_number(&event, ST_FIELD_TRACK_EVENT_TYPE, 1);
 *   add_message(&packet, ST_FIELD_TRACE_PACKET_TRACK_EVENT, &event);
 *
 * A field that doesn't fit is left out.
 */
#pragma once

#include <string.h>

#include "core/fields.h"
#include "core/wire.h"

struct message {
  uint8_t data[4096];
  size_t size;
};

static inline bool has_room(const struct message* m, size_t size) {
  return m->size + size + ST_MAX_TAG + ST_MAX_VARINT <= sizeof m->data;
}

static inline void add_number(struct message* m, uint32_t field,
                              uint64_t value) {
  if (has_room(m, 0))
    m->size =
        (size_t)(st_put_u64_field(m->data + m->size, field, value) - m->data);
}

static inline void add_bytes(struct message* m, uint32_t field,
                             const void* data, size_t size) {
  if (has_room(m, size))
    m->size =
        (size_t)(st_put_bytes_field(m->data + m->size, field, data, size) -
                 m->data);
}

static inline void add_text(struct message* m, uint32_t field,
                            const char* text) {
  add_bytes(m, field, text, strlen(text));
}

static inline void add_message(struct message* m, uint32_t field,
                               const struct message* inner) {
  add_bytes(m, field, inner->data, inner->size);
}

/* Starts a packet of a sequence; a timestamp of 0 is left out. */
static inline struct message begin_packet(uint32_t sequence, uint64_t ts) {
  struct message packet = {0};
  if (ts)
    add_number(&packet, ST_FIELD_TRACE_PACKET_TIMESTAMP, ts);
  add_number(&packet, ST_FIELD_TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID,
             sequence);
  return packet;
}

static inline struct message track_event(uint64_t type, uint64_t track,
                                         const char* name) {
  struct message event = {0};
  add_number(&event, ST_FIELD_TRACK_EVENT_TYPE, type);
  add_number(&event, ST_FIELD_TRACK_EVENT_TRACK_UUID, track);
  if (name)
    add_text(&event, ST_FIELD_TRACK_EVENT_NAME, name);
  return event;
}
