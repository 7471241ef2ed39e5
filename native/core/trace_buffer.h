/* Trace buffer: where the service keeps the chunks of a session.
 *
 * Problem: chunks of many producers arrive in any order, some of them before
 * they are complete (scraped), some with holes (patches to come); the oldest
 * make room for the newest; and what is read must be whole packets, in order,
 * each with word of what was lost before it.
 *
 * Storage: one ring of records, 16-byte aligned.  A record holds only the
 * bytes of a chunk that are fragments; a chunk that isn't complete reserves
 * its full size, so that its later commit can be written in place.
 *
 *   0          4           6         8          10     12      13
 *   | chunk id | producer  | writer  | fragments| size | flags | 'CHU' |
 *   +----------+-----------+---------+----------+------+-------+-------+
 *   u32          u16         u16       u16        u16    u8      3 bytes
 *   (16 bytes, then `size` - 16 bytes of payload, padded to 16)
 *
 * Everything that a reader needs is in the records, so a buffer in a mapped
 * file survives the process: st_trace_buffer_recover rebuilds the index.
 *
 *   file:  | header page | producers: 65536 x {u32 uid, i32 pid, u32 machine}
 *          | ring |
 *
 * Index: a sequence is one (producer, writer).  For each sequence a list of
 * its live records in chunk-id order (ids wrap: compared as signed 32-bit
 * difference), its read position, and what was lost.
 *
 * Policies: RING overwrites the oldest record; DISCARD refuses the first
 * record that doesn't fit before the end, and everything after it.
 *
 * Reading is destructive and goes in buffer order, oldest record first; at a
 * record the reader first returns what is unread in earlier chunks of its
 * sequence.  A sequence is skipped for this pass where it would have to wait:
 * a chunk that needs patching, an incomplete chunk after its readable
 * fragments, a packet whose last fragment isn't there yet.
 *
 * Loss is reported with the next packet of the sequence as a bit mask
 * (previous_packet_dropped), and counted in the stats.
 *
 * Re-commit: the same (producer, writer, chunk id) again is a scraped chunk
 * that has grown: rewritten in place, the read position kept; a shorter one,
 * or one whose flags vanished, is ignored.  So is everything that would change
 * a complete chunk, patches apart.  A chunk that was scraped and read to its
 * end is relocated to the write position of a RING; one that was evicted may
 * come back: only the fragments not yet read count, and what was counted as
 * overwritten with it is not lost after all.  A chunk whose turn has passed is
 * discarded, unless all of it was seen before.
 *
 * Locks: one leaf mutex, held for one chunk's copy at most: by a writer for
 * copying in, by the reader for copying one record out.
 *
 * Source: docs/formats/service.md, "Trace buffer"; names as in `stats` of the trace processor.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patch_list.h"
#include "writer_stats.h"

enum st_fill_policy { ST_RING = 1, ST_DISCARD = 2 };

/* Bits of TracePacket.previous_packet_dropped. */
enum st_data_loss {
  ST_LOSS_PRESENT = 1, /* set whenever any other is */
  ST_LOSS_READ_GAP = 2,
  ST_LOSS_CHUNK_CORRUPTED = 4,
  ST_LOSS_ORPHAN_CONTINUATION = 8,
  ST_LOSS_REASSEMBLY_GAP = 16,
  ST_LOSS_BROKEN_CHAIN = 32,
  ST_LOSS_OVERWRITE = 64,
  ST_LOSS_WRITER_ABORT = 128,
  ST_LOSS_SMB_FULL = 256,
};

/* TraceStats.BufferStats; all sizes count whole records. */
struct st_buffer_stats {
  uint64_t bytes_written, chunks_written;
  uint64_t bytes_overwritten, chunks_overwritten;
  uint64_t chunks_discarded, chunks_rewritten, chunks_relocated;
  uint64_t chunks_committed_out_of_order;
  uint64_t write_wrap_count;
  uint64_t patches_succeeded, patches_failed;
  uint64_t readaheads_succeeded, readaheads_failed;
  uint64_t bytes_read, chunks_read;
  uint64_t padding_bytes_written, padding_bytes_cleared;
  uint64_t abi_violations;
  uint64_t trace_writer_packet_loss;
  uint64_t sequence_packet_loss; /* packets returned with a loss mask */
};

struct st_trace_buffer; /* opaque: trace_buffer_internal.h */

/* size is rounded up to 4096.  fd >= 0: a file to map (grown to fit), else
 * anonymous memory.  NULL when out of memory. */
struct st_trace_buffer* st_trace_buffer_create(size_t size,
                                               enum st_fill_policy policy,
                                               int fd);
void st_trace_buffer_destroy(struct st_trace_buffer* b);

/* Opens a file that a process left behind and rebuilds the index from its
 * records; torn records end the walk.  NULL if it isn't such a file. */
struct st_trace_buffer* st_trace_buffer_recover(int fd);

/* Who a producer is, for the trusted fields of its packets. */
void st_trace_buffer_set_producer(struct st_trace_buffer* b, uint16_t producer,
                                  uint32_t uid, int32_t pid);
void st_trace_buffer_get_producer(struct st_trace_buffer* b, uint16_t producer,
                                  uint32_t* uid, int32_t* pid);

/* Its machine, 0 (the default) for this one. */
void st_trace_buffer_set_machine(struct st_trace_buffer* b, uint16_t producer,
                                 uint32_t machine_id);

/* One chunk as it was in shared memory.  The payload may be shared memory
 * that changes under us: it is copied first and validated in the copy. */
struct st_chunk_copy {
  uint16_t producer_id;
  uint16_t writer_id;
  uint32_t chunk_id;
  uint16_t fragments; /* of an incomplete chunk: the trusted ones only */
  uint8_t flags;      /* enum st_chunk_flags */
  bool complete;
  const uint8_t* payload;
  size_t payload_size;
};

/* False: refused (discarded, violation, ignored re-commit); counted. */
bool st_trace_buffer_copy_chunk(struct st_trace_buffer* b,
                                const struct st_chunk_copy* chunk);

struct st_patch_data {
  uint32_t offset;
  uint8_t data[ST_PATCH_SIZE];
};
bool st_trace_buffer_patch(struct st_trace_buffer* b, uint16_t producer_id,
                           uint16_t writer_id, uint32_t chunk_id,
                           const struct st_patch_data* patches, size_t count,
                           bool has_more);

/* A packet, whole.  data stays valid until the next call; 64 bytes behind it
 * may be read as well (they hold nothing), so that short ones can be copied in
 * one go. */
struct st_packet {
  uint16_t producer_id;
  uint16_t writer_id;
  uint32_t uid;
  int32_t pid;
  uint32_t machine_id;
  uint32_t loss; /* enum st_data_loss */
  const uint8_t* data;
  size_t size;
};

/* Starts a read pass.  One reader at a time. */
void st_trace_buffer_begin_read(struct st_trace_buffer* b);
/* False: nothing more in this pass. */
bool st_trace_buffer_read_packet(struct st_trace_buffer* b,
                                 struct st_packet* out);

void st_trace_buffer_stats(struct st_trace_buffer* b,
                           struct st_buffer_stats* out);
/* Copies what is known of the writers into `out`, which is empty.  False: out
 * of memory. */
bool st_trace_buffer_writers(struct st_trace_buffer* b,
                             struct st_writer_stats* out);
size_t st_trace_buffer_size(const struct st_trace_buffer* b);
/* Bytes of records not yet read; read without the lock. */
uint64_t st_trace_buffer_unread(const struct st_trace_buffer* b);

/* Whether a buffer whose reader waits for a watermark is about to overwrite
 * what was not read: three times the watermark, but no more than 3/4 of its
 * size, is unread.  Without the lock. */
bool st_trace_buffer_congested(const struct st_trace_buffer* b);

/* Writes 8 bytes to the eventfd each time the unread bytes rise above
 * `watermark`; the service then drains to its file without waiting for its
 * timer.  fd is borrowed; -1 switches it off. */
void st_trace_buffer_set_watermark(struct st_trace_buffer* b, int eventfd,
                                   uint64_t watermark);

/* A copy with the same read position, for clone. */
struct st_trace_buffer* st_trace_buffer_clone(struct st_trace_buffer* b);

/* Two buffers swap what they hold: memory, index, read position, stats.
 * Writers that are in the middle of a chunk finish it where they began.
 * A scraped chunk that comes again is new to the other memory, and taken whole.
 * Watermarks stay.  The caller keeps readers of both away meanwhile. */
void st_trace_buffer_exchange(struct st_trace_buffer* a,
                              struct st_trace_buffer* b);
