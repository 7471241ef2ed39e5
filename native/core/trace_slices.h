/* Trace slices: converts between trace bytes and ReadBuffers replies.
 *
 *   a trace               0a n packet            Trace.packet, repeated
 *   ReadBuffersResponse   12 m 0a n packet 10 01
 *                         slices { data, last_slice_for_packet }
 *
 * Problem: the trace of a busy machine consists of packets of about twenty
 * bytes, and each has to be moved from one message to another.  The encoding of
 * a slice begins with the bytes that the packet has in a trace, so packing is a
 * copy.  Perfetto's service sends each packet in at least two slices: the
 * producer's bytes, and the trusted fields of the service.
 *
 * st_slices_pack stops at a packet that is too large for a reply.
 * st_slices_join stops at a packet that is not complete in the reply, and at a
 * slice that is encoded in another way.  The caller,
 * stretto.ports.trace_slices, handles these and continues.
 *
 * Source: docs/formats/ipc.md, "ConsumerPort".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  /* The largest number of bytes by which a slice is larger than its packet. */
  ST_SLICE_OVERHEAD = 16,
};

/* Converts packets of the trace to slices in `out`, which has room for `limit`
 * bytes.  Converts as many packets as are sure to fit: each packet counts as
 * its size plus ST_SLICE_OVERHEAD.  Sets *written.  Returns how many bytes of
 * the trace were converted. */
size_t st_slices_pack(const uint8_t* trace, size_t size, size_t limit,
                      uint8_t* out, size_t* written);

/* Converts the packets whose slices are complete in the reply to trace bytes in
 * `out`, which has room for `size` bytes.  Sets *written.  Returns how many
 * bytes of the reply were converted. */
size_t st_slices_join(const uint8_t* reply, size_t size, uint8_t* out,
                      size_t* written);
