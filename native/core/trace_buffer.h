/* Trace buffer: stores the chunks of a session in the service.
 *
 * Problem: chunks of many producers arrive in any order, some before they are
 * complete (scraped), some with sizes missing (patches follow). The newest
 * chunks overwrite the oldest.  Yet the reader must get complete packets, in
 * order, each with a mark if packets before it were lost.
 *
 * Storage: one ring of records, 16-byte aligned.  A record holds only the used
 * bytes of a chunk.  An incomplete chunk reserves its full size, so that its
 * later commit can be written in place.
 *
 *   0          4           6         8          10     12      13
 *   | chunk id | producer  | writer  | fragments| size | flags | 'CHU' |
 *   +----------+-----------+---------+----------+------+-------+-------+
 *   u32          u16         u16       u16        u16    u8      3 bytes
 *   (16 bytes, then `size` - 16 bytes of payload, padded to 16)
 *
 * The records contain all data that a reader needs.  So a buffer in a mapped
 * file can be read after the process has died: st_trace_buffer_recover rebuilds
 * the index.
 *
 *   file:  | header page | producers: 65536 x {u32 uid, i32 pid, u32 machine}
 *          | ring |
 *
 * Index: a sequence is one (producer, writer). The index has for each sequence
 * a list of its records in chunk-id order (ids wrap, so they are compared by
 * their signed 32-bit difference), its read position, and its losses.
 *
 * Policies: RING overwrites the oldest record; DISCARD refuses the first record
 * that does not fit before the end, and all later ones.
 *
 * Reading is destructive and goes in buffer order, oldest record first.  At a
 * record the reader first returns unread packets of earlier chunks of the same
 * sequence.  A sequence is skipped for the rest of a pass if its next packet is
 * not readable yet: its chunk needs patches, or is incomplete, or the packet's
 * last fragment has not arrived.
 *
 * Loss is reported with the next packet of the sequence as a bit mask
 * (previous_packet_dropped), and counted in the stats.
 *
 * Re-commit: a second commit of the same (producer, writer, chunk id) is a
 * scraped chunk that has grown.
 *   - Usually its record is rewritten in place and keeps its read position.
 *   - In a RING, a record that was read to its end is relocated to the write
 *     position.
 *   - If the record was evicted, the chunk is added again with its unread
 *     fragments, which then do not count as lost.
 *   - The second commit is ignored if it is shorter than the first, lacks a
 *     flag of the first, or would change a complete chunk.  (Only patches may
 *     change a complete chunk.)
 *   - The second commit is discarded if later chunks of its sequence were read
 *     and it contains new data.
 *   - If the record was read and removed from a streamed buffer, and the chunk
 *     has not grown, nothing is written or counted.
 *
 * Locks: one leaf mutex, held for the copy of one chunk at most: a writer
 * copies a chunk in, the reader copies one record out.
 *
 * Source: docs/formats/service.md, "Trace buffer"; names as in `stats` of the
 * trace processor.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data_loss.h"
#include "patch_list.h"
#include "writer_stats.h"

enum st_fill_policy { ST_RING = 1, ST_DISCARD = 2 };

/* The statistics of TraceStats.BufferStats.  All sizes include record
 * headers. */
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
  /* The number of packets that were returned with a loss mask. */
  uint64_t sequence_packet_loss;
};

/* A trace buffer.  Its members are in trace_buffer_internal.h. */
struct st_trace_buffer;

/* Creates a buffer.  `size` is rounded up to a multiple of 4096.  If `fd` is
 * not -1, the buffer maps this file, which is enlarged if needed; otherwise the
 * memory is anonymous.  Returns NULL when out of memory. */
struct st_trace_buffer* st_trace_buffer_create(size_t size,
                                               enum st_fill_policy policy,
                                               int fd);
void st_trace_buffer_destroy(struct st_trace_buffer* b);

/* Opens a trace buffer in the file of a dead process.  Rebuilds the index from
 * the file's records, up to the first incomplete record.  Returns NULL if the
 * file is no trace buffer. */
struct st_trace_buffer* st_trace_buffer_recover(int fd);

/* Sets the identity of a producer.  It is written to the trusted fields of the
 * producer's packets. */
void st_trace_buffer_set_producer(struct st_trace_buffer* b, uint16_t producer,
                                  uint32_t uid, int32_t pid);

/* Sets the machine id of a producer.  0, the default, means this machine. */
void st_trace_buffer_set_machine(struct st_trace_buffer* b, uint16_t producer,
                                 uint32_t machine_id);

/* The parts of a chunk in shared memory.  The payload may change at any time,
 * so it is copied first, and then the copy is validated. */
struct st_chunk_copy {
  uint16_t producer_id;
  uint16_t writer_id;
  uint32_t chunk_id;
  /* The number of finished fragments, if the chunk is incomplete. */
  uint16_t fragments;
  /* The flags of the chunk header, as bits of enum st_chunk_flags. */
  uint8_t flags;
  bool complete;
  /* No other process can change the payload while it is copied. */
  bool is_private;
  const uint8_t* payload;
  size_t payload_size;
};

/* Copies a chunk into the buffer.  Returns false if the chunk was refused, and
 * counts the reason (discarded, violation, ignored re-commit). */
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

/* A complete packet.  `data` stays valid until the next call.  The 64 bytes
 * after the packet are readable, too, with undefined content.  So short packets
 * can be copied with a constant size. */
struct st_packet {
  uint16_t producer_id;
  uint16_t writer_id;
  uint32_t uid;
  int32_t pid;
  uint32_t machine_id;
  /* The losses before this packet, as bits of enum st_data_loss. */
  uint32_t loss;
  const uint8_t* data;
  size_t size;
};

/* Starts a read pass over the buffer.  A buffer has one reader at a time. */
void st_trace_buffer_begin_read(struct st_trace_buffer* b);
/* Stores the next packet.  Returns false if this read pass has no more
 * packets. */
bool st_trace_buffer_read_packet(struct st_trace_buffer* b,
                                 struct st_packet* out);

void st_trace_buffer_stats(struct st_trace_buffer* b,
                           struct st_buffer_stats* out);
/* Copies the statistics of the buffer's writers into `out`, which is empty.
 * Returns false when out of memory. */
bool st_trace_buffer_writers(struct st_trace_buffer* b,
                             struct st_writer_stats* out);
size_t st_trace_buffer_size(const struct st_trace_buffer* b);
/* Returns the size of all unread records of the buffer in bytes, without taking
 * the lock. */
uint64_t st_trace_buffer_unread(const struct st_trace_buffer* b);

/* Returns whether a buffer with a watermark is about to overwrite unread data:
 * more than three times the watermark, or more than 3/4 of the buffer's size,
 * is unread.  Does not take the lock. */
bool st_trace_buffer_congested(const struct st_trace_buffer* b);

/* Sets the watermark.  Each time the unread bytes rise above the watermark, 8
 * bytes are written to the eventfd `fd`: the service then drains the buffer to
 * its file, before its next timer.  The caller closes `fd`; -1 switches the
 * watermark off. */
void st_trace_buffer_set_watermark(struct st_trace_buffer* b, int eventfd,
                                   uint64_t watermark);

/* Returns a copy of the buffer with the same read position, for a cloned
 * session. */
struct st_trace_buffer* st_trace_buffer_clone(struct st_trace_buffer* b);

/* Exchanges the contents of two buffers: memory, index, read position, stats.
 * A writer in the middle of a chunk finishes the chunk in the memory where the
 * chunk began.  A scraped chunk that is committed again after the exchange is
 * new to the other memory and is added as a whole.  Watermarks are not
 * exchanged.  The caller stops all readers of both buffers meanwhile. */
void st_trace_buffer_exchange(struct st_trace_buffer* a,
                              struct st_trace_buffer* b);
