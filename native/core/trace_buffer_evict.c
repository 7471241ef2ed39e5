#include <string.h>

#include "trace_buffer_internal.h"

/* Eviction parses the unread fragments of a record as the reader does.  It thus
 * counts the losses of the sequence exactly.  It also notes that a packet began
 * in the evicted record, so that the reader does not take the rest of this
 * packet for a whole one.
 *
 * Free space is counted like in Perfetto: an evicted record counts as padding
 * until it is overwritten.  If a shorter record overwrites it, the rest is
 * still padding.  Bytes that were never written are not padding. */

static bool was_never_written(const struct st_record* r) {
  return (r->flags & ST_RECORD_VIRGIN) == ST_RECORD_VIRGIN;
}

/* Returns whether the complete fragments after the record's read position
 * contain a packet. */
static bool has_packet(const struct st_trace_buffer* b,
                       const struct st_record* r) {
  const uint8_t* payload = st_record_payload(b, r);
  const uint8_t* p = payload + r->read;
  const uint8_t* end = payload + st_whole_packets_end(r);
  while (p < end) {
    uint64_t size;
    p = st_get_fragment(p, end, &size);
    if (!p || size)
      return p != NULL;
  }
  return false;
}

/* Evicts a packet that begins in the first record of a sequence and continues
 * in later records. */
static void evict_chain(struct st_trace_buffer* b, struct st_sequence* s,
                        bool gap) {
  struct st_chain chain;
  if (st_find_chain(&b->index, s, gap, &chain)) {
    st_stats(b)->readaheads_succeeded++;
    chain.loss = ST_LOSS_OVERWRITE;
  } else {
    st_stats(b)->readaheads_failed++;
  }
  s->loss |= chain.loss ? chain.loss : ST_LOSS_OVERWRITE;
  st_consume_chain(b, &chain, ST_EVICTION);
}

static void evict_first(struct st_trace_buffer* b, struct st_sequence* s,
                        bool gap) {
  struct st_record* r = st_record_at(&b->index, s->first);
  if (st_is_continuation(r))
    st_skip_orphan(b, s, r, ST_EVICTION);
  uint32_t whole = st_whole_packets_end(r);
  if (r->read < whole) {
    if (!(s->loss & ST_LOSS_OVERWRITE) && has_packet(b, r))
      s->loss |= ST_LOSS_OVERWRITE;
    st_consume(b, r, whole, ST_EVICTION);
  }
  if (!st_nothing_left(r))
    evict_chain(b, s, gap);
  if (r->flags & ST_RECORD_CORRUPTED)
    s->loss |= ST_LOSS_CHUNK_CORRUPTED;
  st_erase_first_in_ring(b, s);
}

/* Evicts a record, and before it all earlier records of the same sequence. */
static void evict_record(struct st_trace_buffer* b, uint32_t number) {
  struct st_index* x = &b->index;
  struct st_sequence* s = st_sequence_of(x, st_record_at(x, number));
  bool gap = false;
  st_sequence_note_gap(x, s);
  for (bool more = true; more;) {
    uint32_t next_id = st_record_at(x, s->first)->chunk_id + 1;
    more = s->first != number;
    evict_first(b, s, gap);
    if (more && st_record_at(x, s->first)->chunk_id != next_id)
      gap = true;
  }
}

/* Removes the index entry of the oldest record. */
static void drop_oldest(struct st_trace_buffer* b) {
  const struct st_record* r = st_record_at(&b->index, b->index.head);
  atomic_store_explicit(&b->header->oldest, st_oldest(b) + st_record_size(r),
                        memory_order_release);
  b->index.head++;
}

/* Turns the oldest record into padding.  If it is padding already, it is only
 * counted as cleared. */
static void clear_oldest(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  const struct st_record* r = st_record_at(x, x->head);
  if (r->sequence != ST_NO_SEQUENCE)
    evict_record(b, x->head);
  else if (!was_never_written(r))
    st_stats(b)->padding_bytes_cleared += st_record_size(r);
}

void st_evict_oldest(struct st_trace_buffer* b) {
  clear_oldest(b);
  drop_oldest(b);
}

/* The fence keeps the compiler from moving the next store before the update of
 * `oldest`.  If the process dies between the two, recovery must not find a half
 * overwritten record in use. */
static void before_store(void) {
  atomic_signal_fence(memory_order_seq_cst);
}

static void make_room(struct st_trace_buffer* b, uint32_t size) {
  struct st_index* x = &b->index;
  bool virgin = !b->pad_ahead && st_free_bytes(b);
  st_stats(b)->padding_bytes_cleared += b->pad_ahead;
  while (st_free_bytes(b) < size) {
    virgin = was_never_written(st_record_at(x, x->head));
    st_evict_oldest(b);
  }
  before_store();
  b->pad_ahead = virgin ? 0 : (uint32_t)(st_free_bytes(b) - size);
  st_stats(b)->padding_bytes_written += b->pad_ahead;
}

void st_write_header(uint8_t* place, uint32_t key, uint32_t chunk_id,
                     uint32_t fragments, uint32_t size, uint8_t flags) {
  struct st_record_header h = {
      .chunk_id = chunk_id,
      .producer_id = (uint16_t)(key >> 16),
      .writer_id = (uint16_t)key,
      .fragments = (uint16_t)fragments,
      .size = (uint16_t)size,
      .flags = flags,
      .magic = {'C', 'H', 'U'},
  };
  memcpy(place, &h, sizeof h);
}

struct st_record* st_append_record(struct st_trace_buffer* b, uint32_t size) {
  uint64_t position = st_write_position(b);
  if (position && position % b->size == 0)
    st_stats(b)->write_wrap_count++;
  struct st_record* r = st_index_push(&b->index);
  r->block = (uint32_t)(position % b->size / ST_RECORD_ALIGN);
  r->blocks = (uint16_t)(size / ST_RECORD_ALIGN);
  atomic_store_explicit(&b->header->write, position + size,
                        memory_order_release);
  return r;
}

static void append_padding(struct st_trace_buffer* b, uint32_t size,
                           bool virgin) {
  before_store();
  st_write_header(st_write_place(b), 0, 0, 0, size, ST_RECORD_PADDING);
  struct st_record* r = st_append_record(b, size);
  r->flags = virgin ? ST_RECORD_VIRGIN : ST_RECORD_PADDING;
}

/* Turns the records between the write position and the end of the ring into
 * padding of the same sizes.  The next record then begins at the start of the
 * ring. */
static void pad_to_end(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  uint64_t free = st_free_bytes(b);
  if (free > st_bytes_to_end(b))
    free = st_bytes_to_end(b);
  if (free)
    append_padding(b, (uint32_t)free, !b->pad_ahead);
  st_stats(b)->padding_bytes_cleared += b->pad_ahead;
  b->pad_ahead = 0;
  while (st_write_position(b) % b->size) {
    clear_oldest(b);
    struct st_record was = *st_record_at(x, x->head);
    drop_oldest(b);
    append_padding(b, st_record_size(&was), was_never_written(&was));
  }
}

uint8_t* st_make_place(struct st_trace_buffer* b, uint32_t size) {
  if (b->policy == ST_DISCARD && st_write_position(b) + size > b->size) {
    b->full = true;
    return NULL;
  }
  if (st_bytes_to_end(b) < size)
    pad_to_end(b);
  make_room(b, size);
  return st_write_place(b);
}
