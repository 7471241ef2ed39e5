/* Trace slices: whole packets on their way through ReadBuffers.
 *
 *   a trace               0a n packet            Trace.packet, repeated
 *   ReadBuffersResponse   12 m 0a n packet 10 01
 *                         slices { data, last_slice_for_packet }
 *
 * Problem: the traces of a busy machine are packets of some twenty bytes, and
 * each has to be taken out of one message and put into another.  A whole
 * packet is a slice as it stands, so that is a copy.  Perfetto's service sends
 * every packet in two slices at least: what the producer wrote, and what the
 * service has to say of it.
 *
 * A packet too large for a reply stops st_slices_pack; one that isn't whole in
 * the reply, or a slice that is encoded in another way, st_slices_join.  The
 * caller handles it and goes on: stretto.ports.trace_slices.
 *
 * Source: docs/formats/ipc.md, "ConsumerPort".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  /* What a slice may cost beside its packet, in bytes and by the protocol. */
  ST_SLICE_OVERHEAD = 16,
};

/* Writes slices for as many packets of the trace as fit in `limit` bytes with
 * ST_SLICE_OVERHEAD each; `out` has room for `limit`.  Sets *written, and
 * returns how many bytes of the trace that took. */
size_t st_slices_pack(const uint8_t* trace, size_t size, size_t limit,
                      uint8_t* out, size_t* written);

/* Writes the packets whose slices are all there; `out` has room for `size`
 * bytes.  Sets *written, and returns how many bytes of the reply that took. */
size_t st_slices_join(const uint8_t* reply, size_t size, uint8_t* out,
                      size_t* written);
