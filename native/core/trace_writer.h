/* Trace writer: turns packets into fragments in chunks.  One thread owns it;
 * nothing here takes a lock or allocates, except to get or return a chunk.
 *
 * A chunk's payload is a list of fragments, each `varint size, bytes`.  A
 * packet that doesn't fit goes on in the writer's next chunk, with flags on
 * both; it may be larger than the whole shared memory buffer.
 *
 *   chunk 7  | hdr | n packet | n packet | n half a pack-|  LAST_CONTINUES
 *   chunk 8  | hdr | n -et    | n packet | ...              FIRST_CONTINUES
 *
 * Visible at any moment: a scraper (or a service that reads what a killed
 * process left) trusts all packets of a chunk that isn't complete but the
 * last one started.  So when a packet ends the writer at once counts one more
 * as started: the count in the header is always (finished + 1), and a chunk
 * that is returned in this state gets a zero-size packet at its end.
 *
 * Two ways to write:
 *  A  st_trace_writer_reserve / _commit: the packet's size has a known bound
 *     and fits in the chunk.  Inline; what track events use.
 *  B  st_trace_writer_append: a finished packet of any size, in pieces.
 *  C  st_trace_writer_begin_packet / _end_packet: a stream for messages whose
 *     size nobody knows yet (message.h); leaves patches behind when nested
 *     messages span chunks.
 *
 * Loss.  When no chunk can be had the packet is dropped and counted, and the
 * writer tries again with the next packet.  The first packet after that
 * carries previous_packet_dropped (field 42) = 257 = PRESENT | SMB_FULL; if
 * there is none until the writer's end, the arbiter's loss marker writes the
 * mark (loss_marks.h).  A
 * packet cut in its middle has its current fragment's size set to the drop
 * sentinel, ff ff ff 7f.  The very first packet of a writer carries
 * first_packet_on_sequence (87).  Both are the writer's business, not the
 * caller's; a writer that is dropping repeats none of it until a packet gets
 * through.  Who needs to know that incremental state is gone compares
 * `drop_count` with what it saw last, and heeds the result of append and
 * end_packet: a second loss in a row is no new entry into drop mode.
 *
 * The next chunk is taken before the current one is returned, since a packet
 * that can't go on has to be cut where its fragment still belongs to us: a
 * packet that spans chunks needs two chunks at a time.
 *
 * Source: docs/formats/shared_memory.md, "Packets and fragments", "Patches", "Drop mode".
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
  /* Hot: where the next fragment's size goes, and the end of the payload.
   * cur == end == NULL means that there is no chunk, or that a streamed packet
   * is open. */
  uint8_t* cur;
  uint8_t* end;
  struct st_chunk_header* header;
  uint16_t packets;  /* our copy of header->packets: count and flags */
  bool needs_prefix; /* the next packet carries field 42 or 87 */

  uint16_t writer_id;
  uint32_t target_buffer;
  uint32_t chunk_id; /* of the current chunk, or of the next one if there is
                        none (chunk.size == 0) */
  enum st_exhausted_policy policy;
  struct st_arbiter* arbiter;
  struct st_chunk chunk;

  bool first_packet;   /* no packet written yet */
  bool dropping;       /* the last packet was lost */
  uint32_t drop_count; /* entries into drop mode */
  uint64_t packets_written;
  uint64_t packets_dropped;

  /* Streaming (C). */
  struct st_stream_writer stream;
  struct st_message root;
  struct st_patch_list patches;
  uint8_t* fragment_size;     /* 4-byte field of the fragment being written */
  struct st_chunk next_chunk; /* taken, not yet gone on to */
  bool in_packet;
  bool packet_lost; /* the open packet's bytes are discarded */
};

/* False when no writer id is to be had. */
bool st_trace_writer_init(struct st_trace_writer* w, struct st_arbiter* a,
                          uint32_t target_buffer,
                          enum st_exhausted_policy policy);

/* Returns the chunk, ships patches, has a loss marked that it could not mark
 * itself, gives the writer id back. */
void st_trace_writer_destroy(struct st_trace_writer* w);

/* Returns the current chunk, however full, ships ready patches and has the
 * sink hand over what it batched.  Ends an open packet. */
void st_trace_writer_flush(struct st_trace_writer* w);

/* In the child of a fork, after its arbiter was disabled: the writer forgets
 * its chunk, which is the parent's, and drops everything from now on. */
void st_trace_writer_disable_after_fork(struct st_trace_writer* w);

/* Payload bytes of a chunk that can still be had without changing chunk. */
static inline size_t st_trace_writer_room(const struct st_trace_writer* w) {
  return (size_t)(w->end - w->cur);
}

/* --- A: packets of known bound, at most 127 bytes --- */

/* Payload position for a packet of at most max (<= 127) bytes in the current
 * chunk, or NULL: then take the slow way (st_trace_writer_append). */
static inline uint8_t* st_trace_writer_reserve(struct st_trace_writer* w,
                                               size_t max) {
  if (st_trace_writer_room(w) < max + 1 || w->needs_prefix)
    return NULL;
  if ((w->packets & ST_PACKETS_COUNT_MASK) >= ST_MAX_PACKETS_PER_CHUNK - 1)
    return NULL;
  return w->cur + 1;
}

void st_trace_writer_return_full_chunk(struct st_trace_writer* w);

/* The packet that begins at `cur`, size and all, is complete. */
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

/* Ends the packet whose payload lies between reserve()'s result and `end`. */
static inline void st_trace_writer_commit(struct st_trace_writer* w,
                                          uint8_t* end) {
  *w->cur = (uint8_t)(end - w->cur - 1);
  st_trace_writer_end_packet_at(w, end);
}

/* The same for up to 16383 bytes, with a size of two. */
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

/* --- B: a finished packet of any size up to ST_MAX_PACKET_SIZE --- */

/* Makes sure that `bytes` more bytes, their size included, can be written to
 * one chunk, changing chunk if not.  False: no chunk (then the writer enters
 * drop mode), or too small a one (as small as 284 bytes).  No packet is counted
 * as dropped: the caller, or the append that it tries next, does that. */
bool st_trace_writer_ensure_room(struct st_trace_writer* w, size_t bytes);

/* False: dropped and counted. */
bool st_trace_writer_append(struct st_trace_writer* w,
                            const struct st_iovec* pieces, size_t count);

/* --- C: a packet of unknown size --- */

/* NULL is never returned: a packet that will be dropped is written nowhere.
 * Beginning a packet while one is open ends that one first. */
struct st_message* st_trace_writer_begin_packet(struct st_trace_writer* w);
/* False: dropped and counted.  True as well if no packet was open. */
bool st_trace_writer_end_packet(struct st_trace_writer* w);
