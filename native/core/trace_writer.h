/* Trace writer: writes packets as fragments into chunks.  One thread owns a
 * writer.  It takes locks and allocates memory only to get or return a chunk.
 *
 * A chunk's payload is a list of fragments, each `varint size, bytes`. A packet
 * that does not fit continues in the writer's next chunk, with flags on both
 * chunks.  It may be larger than the whole shared memory buffer.
 *
 *   chunk 7  | hdr | n packet | n packet | n half a pack-|  LAST_CONTINUES
 *   chunk 8  | hdr | n -et    | n packet | ...              FIRST_CONTINUES
 *
 * Readable at any time: a scraper, or a service that reads the memory of a
 * killed process, trusts all started packets of an incomplete chunk but the
 * last.  So when a packet ends, the writer at once counts the next packet as
 * started: the count in the header is always (finished + 1). A chunk that is
 * returned in this state gets an empty packet at its end.
 *
 * Three ways to write:
 *   A  st_trace_writer_reserve / _commit: a packet whose size has a known bound
 *      and fits in the chunk.  Inline; used by track events.
 *   B  st_trace_writer_append: a finished packet of any size, in pieces.
 *   C  st_trace_writer_begin_packet / _end_packet: a stream for messages whose
 *      size is not known yet (message.h); makes patches when nested messages
 *      span chunks.
 *
 * Loss.  When no chunk is available the packet is dropped and counted, and the
 * writer tries again with the next packet.  The next written packet carries
 * previous_packet_dropped (field 42) = 257 = PRESENT | SMB_FULL. If the writer
 * ends without another packet, the arbiter's loss marker writes the mark
 * (loss_marks.h). If a packet is cut in its middle, the size of its current
 * fragment becomes the drop sentinel, ff ff ff 7f.  The first packet of a
 * writer carries first_packet_on_sequence (87). The writer adds both fields
 * itself.  A caller that depends on incremental state has to notice each loss.
 * `drop_count` changes when the writer enters drop mode, but not at the further
 * losses in that mode.  So the caller compares `drop_count` with its last
 * value, and also checks the results of append and end_packet.
 *
 * The next chunk is taken before the current one is returned, because a packet
 * that cannot continue has to be cut in a chunk that the writer still owns.  So
 * a packet that spans chunks needs two chunks at a time.
 *
 * Source: docs/formats/shared_memory.md, "Packets and fragments", "Patches",
 * "Drop mode".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arbiter.h"
#include "message.h"
#include "patch_list.h"
#include "stream_writer.h"

#define ST_MAX_PACKET_SIZE (64u << 20)

struct st_iovec {
  const void* data;
  size_t size;
};

struct st_trace_writer {
  /* `cur` is where the next fragment's size will be written, and `end` is the
   * end of the payload.  Both are NULL if there is no chunk, or while a
   * streamed packet is open. */
  uint8_t* cur;
  uint8_t* end;
  struct st_chunk_header* header;
  /* The writer's copy of the chunk header's `packets`: count and flags. */
  uint16_t packets;
  /* Whether the next packet gets field 42 (a loss) or 87 (the first packet). */
  bool needs_prefix;
  uint16_t writer_id;
  /* The id of the current chunk.  If there is no chunk (chunk.size == 0), the
   * id of the next chunk. */
  uint32_t chunk_id;
  uint64_t packets_written;

  uint32_t target_buffer;
  enum st_exhausted_policy policy;
  struct st_arbiter* arbiter;
  struct st_chunk chunk;

  bool first_packet; /* Whether the writer has written no packet yet. */
  /* Whether the writer is in drop mode: its last packet was lost. */
  bool dropping;
  uint32_t drop_count; /* How often the writer has entered drop mode. */
  uint64_t packets_dropped;

  /* The members from here on describe the open streamed packet, if there is
   * one. */
  struct st_stream_writer stream;
  struct st_message root;
  struct st_patch_list patches;
  /* The size field, of 4 bytes, of the current fragment. */
  uint8_t* fragment_size;
  /* The next chunk, which was taken but is not used yet. */
  struct st_chunk next_chunk;
  bool in_packet;
  bool packet_lost; /* Whether the bytes of the open packet are discarded. */
};

/* Initialises a writer.  Returns false when out of writer ids. */
bool st_trace_writer_init(struct st_trace_writer* w, struct st_arbiter* a,
                          uint32_t target_buffer,
                          enum st_exhausted_policy policy);

/* Ends the writer: returns its chunk, sends its patches, and frees the writer
 * id.  If the writer's last packet was lost, reports that to the arbiter. */
void st_trace_writer_destroy(struct st_trace_writer* w);

/* Ends an open packet, gives back the current chunk even if it is not full, and
 * sends ready patches. */
void st_trace_writer_give_back(struct st_trace_writer* w);

/* Calls st_trace_writer_give_back(), and then sends the batched commits. */
void st_trace_writer_flush(struct st_trace_writer* w);

/* Disables the writer in the child of a fork.  The arbiter was disabled before.
 * The writer drops its chunk, which belongs to the parent, and all later
 * packets. */
void st_trace_writer_disable_after_fork(struct st_trace_writer* w);

/* Returns the number of payload bytes that are left in the current chunk. */
static inline size_t st_trace_writer_room(const struct st_trace_writer* w) {
  return (size_t)(w->end - w->cur);
}

/* Whether this number of packets, with `bytes` bytes in all, fits in the current
 * chunk. */
static inline bool st_trace_writer_has_room(const struct st_trace_writer* w,
                                            size_t bytes, unsigned packets) {
  return st_trace_writer_room(w) >= bytes && !w->needs_prefix &&
         (w->packets & ST_PACKETS_COUNT_MASK) + packets <
             ST_MAX_PACKETS_PER_CHUNK;
}

/* First way to write a packet: its largest size is known, and at most 127
 * bytes. */

/* Returns room for a packet of at most `max` (<= 127) bytes in the current
 * chunk.  If it returns NULL, call st_trace_writer_append instead. */
static inline uint8_t* st_trace_writer_reserve(struct st_trace_writer* w,
                                               size_t max) {
  return st_trace_writer_has_room(w, max + 1, 1) ? w->cur + 1 : NULL;
}

void st_trace_writer_return_full_chunk(struct st_trace_writer* w);

/* Ends the packet whose size field is at `cur`, by writing the packet's
 * size. */
static inline void st_trace_writer_end_packet_at(struct st_trace_writer* w,
                                                 uint8_t* end) {
  w->cur = end;
  w->packets_written++;
  if (end == w->end) {
    st_trace_writer_return_full_chunk(w);
    return;
  }
  w->packets++;
  atomic_store_explicit(&w->header->packets, w->packets, memory_order_release);
}

/* Ends a packet.  Its payload is from the result of st_trace_writer_reserve to
 * `end`. */
static inline void st_trace_writer_commit(struct st_trace_writer* w,
                                          uint8_t* end) {
  *w->cur = (uint8_t)(end - w->cur - 1);
  st_trace_writer_end_packet_at(w, end);
}

/* Ends two packets, whose sizes are written.  The payload of the second is up to
 * `end`; the chunk has room after it. */
static inline void st_trace_writer_commit_two(struct st_trace_writer* w,
                                              uint8_t* end) {
  w->cur = end;
  w->packets_written += 2;
  w->packets += 2;
  atomic_store_explicit(&w->header->packets, w->packets, memory_order_release);
}

/* Like st_trace_writer_reserve, but for a packet of up to 16383 bytes, whose
 * size takes two bytes. */
static inline uint8_t* st_trace_writer_reserve_wide(struct st_trace_writer* w,
                                                    size_t max) {
  return st_trace_writer_reserve(w, max + 1) ? w->cur + 2 : NULL;
}

static inline void st_trace_writer_commit_wide(struct st_trace_writer* w,
                                               uint8_t* end) {
  size_t size = (size_t)(end - w->cur - 2);
  w->cur[0] = (uint8_t)(size | 0x80);
  w->cur[1] = (uint8_t)(size >> 7);
  st_trace_writer_end_packet_at(w, end);
}

/* Second way: the packet is finished, and has at most ST_MAX_PACKET_SIZE
 * bytes. */

/* Makes sure that `bytes` more bytes, including fragment sizes, fit into one
 * chunk; takes a new chunk if needed.  Returns false if there is no chunk (the
 * writer then enters drop mode), or if chunks are too small (the smallest have
 * 284 bytes).  Counts no packet as dropped. */
bool st_trace_writer_ensure_room(struct st_trace_writer* w, size_t bytes);

/* Appends a packet.  If the packet is dropped, counts it and returns false. */
bool st_trace_writer_append(struct st_trace_writer* w,
                            const struct st_iovec* pieces, size_t count);

/* Third way: a stream for a packet of unknown size. */

/* Ends an open packet, then begins a packet.  Never returns NULL: if the packet
 * will be dropped, its bytes are discarded. */
struct st_message* st_trace_writer_begin_packet(struct st_trace_writer* w);
/* Ends the open packet, if there is one.  If the packet was dropped, counts it
 * and returns false. */
bool st_trace_writer_end_packet(struct st_trace_writer* w);
