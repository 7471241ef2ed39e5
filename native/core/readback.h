/* Read-back: converts packets of trace buffers to trace bytes.
 *
 * The top level of each packet is validated, because a producer must not write
 * the trusted fields, which only the service may set.  Then the trusted fields
 * are appended, in this order:
 *
 *   3 trusted_uid, 10 trusted_packet_sequence_id, 79 trusted_pid if known,
 *   98 machine_id if not 0, 42 previous_packet_dropped if not 0
 *
 * Before each packet stand 0a and the packet's length.
 *
 * Sequence ids: 1 is the service; each (producer, writer) gets 2, 3, ... when
 * its first packet is read, and keeps its id during the session.
 *
 * A packet is refused, and counted, if a top-level field has one of the numbers
 * 3 10 33 35 36 50 69 79 98 124 125 133, has a wire type other than 0, 1, 2, 5,
 * has a varint above 10 bytes, or ends after the packet.
 *
 * Source: docs/formats/service.md, "Trusted fields".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace_buffer.h"

/* A growing array of output bytes.  `data` is malloc'ed, and the caller frees
 * it. */
struct st_bytes {
  uint8_t* data;
  size_t size, capacity;
};
/* Returns room for n more bytes of output, or NULL when out of memory. */
uint8_t* st_bytes_reserve(struct st_bytes* out, size_t n);

/* A read-back: the sequence ids and counters of one session. */
struct st_readback;
/* Creates a read-back.  `machine_id` is written for producers that have no
 * machine id. */
struct st_readback* st_readback_create(uint32_t machine_id);
/* Returns a copy of a read-back, which continues its sequence ids and counters.
 * Returns NULL when out of memory. */
struct st_readback* st_readback_copy(const struct st_readback* r);
void st_readback_destroy(struct st_readback* r);

uint32_t st_readback_sequence_id(struct st_readback* r, uint16_t producer,
                                 uint16_t writer);
uint64_t st_readback_invalid_packets(const struct st_readback* r);
uint64_t st_readback_packets(const struct st_readback* r);

bool st_packet_is_valid(const uint8_t* data, size_t size);

/* Appends packets of the buffer's current read pass as trace bytes, until the
 * output has `limit` bytes.  Returns true if the pass may have more packets.
 * Call st_trace_buffer_begin_read before. */
bool st_readback_run(struct st_readback* r, struct st_trace_buffer* buffer,
                     struct st_bytes* out, size_t limit);
