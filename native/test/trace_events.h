/* Counts the track events that a trace buffer holds. */
#pragma once

#include "buffer_table.h"
#include "check.h"
#include "decoder.h"
#include "fake_chunk.h"
#include "fields.h"
#include "readback.h"

static inline uint64_t count_events(const struct st_bytes* trace) {
  struct st_decoder packets, fields;
  struct st_field packet, field;
  uint64_t events = 0;
  st_decoder_init(&packets, trace->data, trace->size);
  while (st_decoder_next(&packets, &packet)) {
    st_decoder_init(&fields, packet.data, packet.size);
    while (st_decoder_next(&fields, &field))
      events += field.number == ST_FIELD_TRACE_PACKET_TRACK_EVENT;
    CHECK_EQ(st_decoder_left(&fields), 0);
  }
  CHECK_EQ(st_decoder_left(&packets), 0);
  return events;
}

/* Reads the buffer with this id, and returns the number of its track events. */
static inline uint64_t read_events(struct st_readback* readback,
                                   struct st_buffer_table* table, uint32_t id) {
  struct st_trace_buffer* buffer = st_buffer_table_acquire(table, id);
  struct st_bytes trace = {0};
  begin_read(buffer);
  while (st_readback_run(readback, buffer, &trace, SIZE_MAX)) {
  }
  st_buffer_table_release(table, id);
  uint64_t events = count_events(&trace);
  free(trace.data);
  return events;
}
