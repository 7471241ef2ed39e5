#include "trace_writer.h"

#include <string.h>

enum {
  /* A chunk that has less room than this gets no further packet. */
  MIN_PACKET_ROOM = ST_SIZE_FIELD + 8,
  MAX_COMPACT_FRAGMENT = 127,

  /* Field numbers of the TracePacket fields that the writer sets. */
  FIELD_PREVIOUS_PACKET_DROPPED = 42,
  FIELD_FIRST_PACKET_ON_SEQUENCE = 87,
  LOSS_PRESENT_SMB_FULL = 1 | 256,
};

/* The drop sentinel: a fragment with this size marks that its packet was cut
 * there. */
#define DROP_SENTINEL ST_MAX_MESSAGE_SIZE

#define FLAG(flag) ((uint16_t)((flag) << ST_PACKETS_FLAGS_SHIFT))

static void publish(struct st_trace_writer* w, uint16_t packets) {
  w->packets = packets;
  atomic_store_explicit(&w->header->packets, packets, memory_order_release);
}

static uint8_t* payload(const struct st_chunk* chunk) {
  return chunk->begin + ST_CHUNK_HEADER_SIZE;
}

/* Returns the exhaustion policy for the next chunk.  A writer that has lost a
 * packet drops packets until it gets a chunk again.  A writer that has written
 * no packet yet waits briefly, because otherwise a short thread might lose all
 * of its packets. */
static enum st_exhausted_policy policy_now(const struct st_trace_writer* w) {
  bool drop_mode = w->dropping && !w->chunk.size;
  if (w->policy == ST_STALL_THEN_DROP && drop_mode)
    return ST_DROP;
  if (w->policy == ST_DROP && w->first_packet && !w->dropping)
    return ST_STALL_BRIEFLY;
  return w->policy;
}

static struct st_chunk acquire(struct st_trace_writer* w, uint32_t chunk_id,
                               uint16_t packets) {
  enum st_exhausted_policy policy = policy_now(w);
  if (w->policy != ST_DROP && policy != ST_DROP)
    st_arbiter_wait_for_reader(w->arbiter, w->target_buffer);
  return st_arbiter_get_chunk(w->arbiter, w->writer_id, chunk_id, packets,
                              policy);
}

static void install(struct st_trace_writer* w, struct st_chunk chunk,
                    uint16_t packets) {
  w->chunk = chunk;
  w->header = st_chunk_header(&chunk);
  w->packets = packets;
}

/* The next packet may use the rest of the chunk's payload, from `cur` on. */
static void open_room(struct st_trace_writer* w, uint8_t* cur) {
  w->cur = cur;
  w->end = w->chunk.begin + w->chunk.size;
}

static void close_room(struct st_trace_writer* w) {
  w->cur = w->end = NULL;
}

static void send_patches(struct st_trace_writer* w) {
  if (st_patch_list_has_ready(&w->patches))
    st_arbiter_send_patches(w->arbiter, w->writer_id, w->target_buffer,
                            &w->patches);
}

static void return_chunk(struct st_trace_writer* w) {
  struct st_chunk chunk = w->chunk;
  w->chunk.size = 0;
  w->header = NULL;
  w->chunk_id++;
  close_room(w);
  st_arbiter_return_chunk(w->arbiter, &chunk, w->target_buffer);
  send_patches(w);
}

void st_trace_writer_return_full_chunk(struct st_trace_writer* w) {
  return_chunk(w);
}

/* Returns the current chunk, between two packets, to the arbiter.  The chunk's
 * header counts one packet more than was written, so an empty packet is added,
 * for which there is room. */
static void return_chunk_early(struct st_trace_writer* w) {
  *w->cur = 0;
  return_chunk(w);
}

/* Returns whether a chunk with room for `bytes` is available, and takes a new
 * chunk if needed.  Called between packets. */
static bool have_room(struct st_trace_writer* w, size_t bytes) {
  bool full =
      (w->packets & ST_PACKETS_COUNT_MASK) >= ST_MAX_PACKETS_PER_CHUNK - 1;
  if (w->chunk.size && (full || st_trace_writer_room(w) < bytes))
    return_chunk_early(w);
  if (!w->chunk.size) {
    struct st_chunk chunk = acquire(w, w->chunk_id, 1);
    if (!chunk.size)
      return false;
    install(w, chunk, 1);
    open_room(w, payload(&chunk));
  }
  return st_trace_writer_room(w) >= bytes;
}

static void enter_drop_mode(struct st_trace_writer* w) {
  w->dropping = true;
  w->needs_prefix = true;
  w->drop_count++;
}

/* Counts a lost packet.  No byte of the packet was written. */
static void lose_whole_packet(struct st_trace_writer* w) {
  if (!w->dropping)
    enter_drop_mode(w);
}

static bool count_dropped(struct st_trace_writer* w) {
  w->packets_dropped++;
  return false;
}

/* Cuts the open packet in its current fragment.  Then returns the chunk,
 * because readers ignore all bytes after the drop sentinel. */
static void cut_packet(struct st_trace_writer* w) {
  st_put_size_field(w->fragment_size, DROP_SENTINEL);
  w->packet_lost = true;
  return_chunk(w);
  enter_drop_mode(w);
}

static void discard_rest(struct st_stream_writer* s) {
  s->begin = s->cur = s->end = NULL;
}

static void begin_fragment(struct st_trace_writer* w, uint8_t* at) {
  w->fragment_size = at;
  w->stream.begin = w->stream.cur = at + ST_SIZE_FIELD;
  w->stream.end = w->chunk.begin + w->chunk.size;
}

/* Takes the next chunk for the open packet.  Returns false if no chunk is free;
 * the caller then has to cut the packet. */
static bool take_next_chunk(struct st_trace_writer* w) {
  if (w->next_chunk.size)
    return true;
  if (w->packet_lost || !w->chunk.size)
    return false;
  w->next_chunk =
      acquire(w, w->chunk_id + 1, 1 | FLAG(ST_CHUNK_FIRST_CONTINUES));
  w->packet_lost = w->next_chunk.size == 0;
  return !w->packet_lost;
}

static void go_on_in_next_chunk(struct st_trace_writer* w) {
  struct st_chunk next = w->next_chunk;
  w->next_chunk.size = 0;
  st_put_size_field(w->fragment_size,
                    (uint32_t)(w->stream.cur - w->stream.begin));
  publish(w, w->packets | FLAG(ST_CHUNK_LAST_CONTINUES));
  return_chunk(w);
  install(w, next, 1 | FLAG(ST_CHUNK_FIRST_CONTINUES));
  begin_fragment(w, payload(&next));
}

static void new_buffer(void* self, struct st_stream_writer* s) {
  struct st_trace_writer* w = self;
  if (s->written_before <= ST_MAX_PACKET_SIZE && take_next_chunk(w) &&
      !w->packet_lost) {
    go_on_in_next_chunk(w);
    return;
  }
  if (w->chunk.size)
    cut_packet(w);
  discard_rest(s);
}

/* Called when the stream takes a new buffer while a message in the old one is
 * open.  Returns where to write the size of that message: in a new patch. */
static uint8_t* redirect_size_field(void* self, uint8_t* size_field) {
  struct st_trace_writer* w = self;
  if (!take_next_chunk(w))
    return NULL;
  uint16_t offset = (uint16_t)(size_field - payload(&w->chunk));
  struct st_patch* patch = st_patch_list_add(&w->patches, w->chunk_id, offset);
  if (!patch) {
    w->packet_lost = true;
    return NULL;
  }
  publish(w, w->packets | FLAG(ST_CHUNK_NEEDS_PATCHING));
  return patch->size_field;
}

static const struct st_stream_delegate kStreamDelegate = {new_buffer,
                                                          redirect_size_field};

static void write_prefix(struct st_trace_writer* w) {
  uint8_t bytes[2 * (ST_MAX_TAG + ST_MAX_VARINT)];
  uint8_t* end = bytes;
  if (w->dropping)
    end = st_put_u64_field(end, FIELD_PREVIOUS_PACKET_DROPPED,
                           LOSS_PRESENT_SMB_FULL);
  if (w->first_packet)
    end = st_put_u64_field(end, FIELD_FIRST_PACKET_ON_SEQUENCE, 1);
  st_stream_write(&w->stream, bytes, (size_t)(end - bytes));
}

static void open_packet(struct st_trace_writer* w) {
  st_stream_init(&w->stream, &kStreamDelegate, w);
  w->in_packet = true;
  w->packet_lost = !have_room(w, MIN_PACKET_ROOM);
  if (w->packet_lost) {
    lose_whole_packet(w);
    return;
  }
  begin_fragment(w, w->cur);
  close_room(w);
  if (w->needs_prefix)
    write_prefix(w);
}

static void packet_written(struct st_trace_writer* w, uint8_t* end) {
  w->packets_written++;
  w->needs_prefix = w->first_packet = w->dropping = false;
  open_room(w, end);
  if (w->cur == w->end)
    return_chunk(w);
  else
    publish(w, (uint16_t)(w->packets + 1));
}

static void end_last_fragment(struct st_trace_writer* w) {
  uint8_t* at = w->fragment_size;
  size_t size = (size_t)(w->stream.cur - w->stream.begin);
  uint8_t* end = w->stream.cur;
  if (size <= MAX_COMPACT_FRAGMENT) {
    *at = (uint8_t)size;
    memmove(at + 1, at + ST_SIZE_FIELD, size);
    end = at + 1 + size;
  } else {
    st_put_size_field(at, (uint32_t)size);
  }
  packet_written(w, end);
}

/* If the lost packet has taken a next chunk without using it, that chunk
 * becomes the current one, for the next packet. */
static void keep_next_chunk(struct st_trace_writer* w) {
  if (!w->next_chunk.size)
    return;
  install(w, w->next_chunk, 1);
  w->next_chunk.size = 0;
  publish(w, 1);
  open_room(w, payload(&w->chunk));
}

static bool close_packet(struct st_trace_writer* w) {
  w->in_packet = false;
  w->stream.innermost = NULL;
  if (w->stream.overflowed && w->chunk.size)
    cut_packet(w);
  bool lost = w->packet_lost;
  if (!lost)
    end_last_fragment(w);
  keep_next_chunk(w);
  send_patches(w);
  return lost ? count_dropped(w) : true;
}

struct st_message* st_trace_writer_begin_packet(struct st_trace_writer* w) {
  st_trace_writer_end_packet(w);
  open_packet(w);
  st_message_init_root(&w->root, &w->stream);
  return &w->root;
}

bool st_trace_writer_end_packet(struct st_trace_writer* w) {
  if (!w->in_packet)
    return true;
  st_message_finalize(&w->root);
  return close_packet(w);
}

bool st_trace_writer_ensure_room(struct st_trace_writer* w, size_t bytes) {
  st_trace_writer_end_packet(w);
  if (have_room(w, bytes))
    return true;
  if (!w->chunk.size)
    lose_whole_packet(w);
  return false;
}

static uint64_t total_size(const struct st_iovec* pieces, size_t count) {
  uint64_t size = 0;
  for (size_t i = 0; i < count; i++) {
    if (pieces[i].size > ST_MAX_PACKET_SIZE)
      return UINT64_MAX;
    size += pieces[i].size;
  }
  return size;
}

/* Appends a packet that fits into the current chunk as a whole. */
static void append_whole(struct st_trace_writer* w,
                         const struct st_iovec* pieces, size_t count,
                         uint64_t size) {
  uint8_t* p = st_put_varint(w->cur, size);
  for (size_t i = 0; i < count; i++) {
    if (pieces[i].size > 0)
      memcpy(p, pieces[i].data, pieces[i].size);
    p += pieces[i].size;
  }
  packet_written(w, p);
}

static bool append_in_fragments(struct st_trace_writer* w,
                                const struct st_iovec* pieces, size_t count) {
  open_packet(w);
  for (size_t i = 0; i < count && !w->packet_lost; i++) {
    if (pieces[i].size > 0)
      st_stream_write(&w->stream, pieces[i].data, pieces[i].size);
  }
  return close_packet(w);
}

bool st_trace_writer_append(struct st_trace_writer* w,
                            const struct st_iovec* pieces, size_t count) {
  st_trace_writer_end_packet(w);
  uint64_t size = total_size(pieces, count);
  if (size > ST_MAX_PACKET_SIZE || !have_room(w, MIN_PACKET_ROOM)) {
    lose_whole_packet(w);
    return count_dropped(w);
  }
  if (w->needs_prefix || st_trace_writer_room(w) < st_varint_size(size) + size)
    return append_in_fragments(w, pieces, count);
  append_whole(w, pieces, count, size);
  return true;
}

bool st_trace_writer_init(struct st_trace_writer* w, struct st_arbiter* a,
                          uint32_t target_buffer,
                          enum st_exhausted_policy policy) {
  memset(w, 0, sizeof *w);
  w->arbiter = a;
  w->target_buffer = target_buffer;
  w->policy = policy;
  w->first_packet = w->needs_prefix = true;
  if (st_is_reservation(target_buffer))
    /* The writer of a reservation never waits: its buffer may never get a
     * reader, so the wait could last for ever. */
    w->policy = ST_DROP;
  w->writer_id = st_arbiter_add_writer(a, target_buffer, &w->chunk_id);
  return w->writer_id != 0;
}

void st_trace_writer_give_back(struct st_trace_writer* w) {
  st_trace_writer_end_packet(w);
  if (w->chunk.size)
    return_chunk_early(w);
  send_patches(w);
}

void st_trace_writer_flush(struct st_trace_writer* w) {
  st_trace_writer_give_back(w);
  if (!atomic_load(&w->arbiter->disabled))
    w->arbiter->sink->flush(w->arbiter->sink_self);
}

void st_trace_writer_destroy(struct st_trace_writer* w) {
  st_trace_writer_flush(w);
  st_patch_list_clear(&w->patches);
  if (w->dropping)
    st_arbiter_report_loss(w->arbiter, w->target_buffer);
  st_arbiter_remove_writer(w->arbiter, w->writer_id, w->chunk_id);
}

void st_trace_writer_disable_after_fork(struct st_trace_writer* w) {
  for (struct st_message* m = w->stream.innermost; m; m = m->parent)
    m->size_field = NULL;
  w->chunk.size = w->next_chunk.size = 0;
  w->header = NULL;
  close_room(w);
  w->packet_lost = true;
  w->stream.overflowed++;
  discard_rest(&w->stream);
  w->stream.innermost = NULL;
  st_patch_list_clear(&w->patches);
}
