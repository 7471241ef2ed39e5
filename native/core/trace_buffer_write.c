#include <string.h>
#include <unistd.h>

#include "trace_buffer_internal.h"

/* --- what is unread --- */

static bool has_unread(const struct st_record* r) {
  return r->read < r->end || (r->flags & ST_RECORD_BROKEN);
}

static void add_unread(struct st_trace_buffer* b, uint64_t difference) {
  uint64_t unread = atomic_load_explicit(&b->unread, memory_order_relaxed);
  atomic_store_explicit(&b->unread, unread + difference, memory_order_relaxed);
}

void st_count_unread(struct st_trace_buffer* b, struct st_record* r) {
  if (!has_unread(r) || (r->flags & ST_RECORD_UNREAD))
    return;
  r->flags |= ST_RECORD_UNREAD;
  add_unread(b, st_record_size(r));
}

void st_uncount_unread(struct st_trace_buffer* b, struct st_record* r) {
  if (!(r->flags & ST_RECORD_UNREAD))
    return;
  r->flags &= (uint8_t)~ST_RECORD_UNREAD;
  add_unread(b, 0u - (uint64_t)st_record_size(r));
}

/* --- the ring --- */

/* What is lost with a record that goes, and what its sequence knows then. */
static void note_eviction(struct st_trace_buffer* b, struct st_record* r) {
  struct st_sequence* s = st_sequence_of(&b->index, r);
  struct st_buffer_stats* stats = st_stats(b);
  bool passed =
      (s->flags & ST_SEQUENCE_BEGUN) && st_is_before(r->chunk_id, s->last_id);
  bool comes_again = !passed && (r->flags & ST_RECORD_INCOMPLETE);
  uint32_t lost = has_unread(r) ? st_record_size(r) - r->read : 0;
  if (lost) {
    stats->chunks_overwritten++;
    stats->bytes_overwritten += lost;
  } else {
    stats->chunks_read++;
    stats->bytes_read += st_record_size(r);
  }
  if (lost && !comes_again)
    s->loss |= ST_LOSS_OVERWRITE;
  if (!passed)
    st_sequence_pass(s, r->chunk_id);
  if (!comes_again)
    return;
  s->flags |= ST_SEQUENCE_GREW;
  s->consumed = r->read;
  s->owed = lost;
}

/* The chunk that a record was evicted of comes again, so nothing was lost. */
static void note_return(struct st_trace_buffer* b, struct st_sequence* s) {
  st_stats(b)->chunks_overwritten--;
  st_stats(b)->bytes_overwritten -= s->owed;
  st_stats(b)->chunks_relocated++;
  s->owed = 0;
}

void st_evict_oldest(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  struct st_record* r = st_record_at(x, x->head);
  if (r->sequence != ST_NO_SEQUENCE) {
    note_eviction(b, r);
    st_uncount_unread(b, r);
    st_sequence_unlink(x, x->head);
  } else if (r->flags & ST_RECORD_PADDING) {
    st_stats(b)->padding_bytes_cleared += st_record_size(r);
  }
  atomic_store_explicit(&b->header->oldest, st_oldest(b) + st_record_size(r),
                        memory_order_release);
  x->head++;
}

static uint64_t free_bytes(const struct st_trace_buffer* b) {
  return b->size - (st_write_position(b) - st_oldest(b));
}

static uint32_t bytes_to_end(const struct st_trace_buffer* b) {
  uint64_t left = b->size - st_write_position(b) % b->size;
  return left > ST_MAX_RECORD ? ST_MAX_RECORD + 1 : (uint32_t)left;
}

static void make_room(struct st_trace_buffer* b, uint32_t size) {
  while (free_bytes(b) < size)
    st_evict_oldest(b);
  /* A process that dies in the middle of the next store must have moved
   * `oldest` before; the compiler may not reorder the two. */
  atomic_signal_fence(memory_order_seq_cst);
}

static uint8_t* write_place(const struct st_trace_buffer* b) {
  return b->ring + st_write_position(b) % b->size;
}

static void write_header(uint8_t* place, uint32_t key, uint32_t chunk_id,
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

static void pad_to_end(struct st_trace_buffer* b) {
  uint32_t size = bytes_to_end(b);
  make_room(b, size);
  write_header(write_place(b), 0, 0, 0, size, ST_RECORD_PADDING);
  st_append_record(b, size)->flags = ST_RECORD_PADDING;
  st_stats(b)->padding_bytes_written += size;
}

uint8_t* st_make_place(struct st_trace_buffer* b, uint32_t size) {
  if (b->policy == ST_DISCARD && st_write_position(b) + size > b->size) {
    b->full = true;
    return NULL;
  }
  if (bytes_to_end(b) < size)
    pad_to_end(b);
  make_room(b, size);
  return write_place(b);
}

/* --- chunks --- */

struct st_fragments st_scan_fragments(const uint8_t* payload, size_t size,
                                      uint32_t count, uint8_t flags) {
  const uint8_t *p = payload, *end = payload + size;
  const uint8_t *last = payload, *used = payload;
  uint8_t broken = 0;
  uint32_t good = 0, kept = 0;
  for (; good < count; good++) {
    uint64_t n;
    const uint8_t* data = st_get_fragment(p, end, &n);
    if (!data) {
      broken =
          n == ST_MAX_MESSAGE_SIZE ? ST_RECORD_ABORTED : ST_RECORD_CORRUPTED;
      break;
    }
    last = p;
    p = data + n;
    if (n || (good == 0 && (flags & ST_CHUNK_FIRST_CONTINUES))) {
      used = p;
      kept = good + 1;
    }
  }
  if (broken)
    flags &= (uint8_t)~ST_CHUNK_LAST_CONTINUES;
  if (flags & (ST_CHUNK_LAST_CONTINUES | ST_RECORD_INCOMPLETE))
    kept = good;
  if (flags & ST_CHUNK_LAST_CONTINUES)
    used = p;
  return (struct st_fragments){
      .count = kept,
      .last = (uint32_t)(last - payload),
      .end = (uint32_t)(used - payload),
      .flags = flags | broken,
  };
}

static uint32_t chunk_key(const struct st_chunk_copy* c) {
  return (uint32_t)c->producer_id << 16 | c->writer_id;
}

static struct st_fragments scan_chunk(const struct st_chunk_copy* c,
                                      const uint8_t* copy) {
  uint8_t flags =
      c->flags & (ST_CHUNK_FIRST_CONTINUES | ST_CHUNK_LAST_CONTINUES |
                  ST_CHUNK_NEEDS_PATCHING);
  if (!c->complete)
    flags = (flags & ST_CHUNK_FIRST_CONTINUES) | ST_RECORD_INCOMPLETE;
  return st_scan_fragments(copy, c->payload_size, c->fragments, flags);
}

/* Copies the payload to where it will stay if nothing has to be evicted that
 * anybody wants, else to the bounce area. */
static uint8_t* copy_payload(struct st_trace_buffer* b,
                             const struct st_chunk_copy* c) {
  struct st_index* x = &b->index;
  uint32_t most = st_align_record(ST_RECORD_HEADER + (uint32_t)c->payload_size);
  uint8_t* copy = b->bounce;
  if (bytes_to_end(b) >= most) {
    while (free_bytes(b) < most &&
           st_record_at(x, x->head)->sequence == ST_NO_SEQUENCE)
      st_evict_oldest(b);
    atomic_signal_fence(memory_order_seq_cst);
    if (free_bytes(b) >= most)
      copy = write_place(b) + ST_RECORD_HEADER;
  }
  if (c->payload_size)
    memcpy(copy, c->payload, c->payload_size);
  return copy;
}

/* Makes header and entry tell the same. */
static void describe(struct st_trace_buffer* b, struct st_record* r,
                     const struct st_chunk_copy* c, uint32_t size,
                     const struct st_fragments* f) {
  write_header(st_record_bytes(b, r), chunk_key(c), c->chunk_id, f->count, size,
               f->flags);
  r->chunk_id = c->chunk_id;
  r->last = (uint16_t)f->last;
  r->end = (uint16_t)f->end;
  r->flags = f->flags;
  struct st_buffer_stats* stats = st_stats(b);
  if (f->flags & ST_RECORD_ABORTED)
    stats->trace_writer_packet_loss++;
  if (f->flags & ST_RECORD_CORRUPTED)
    stats->abi_violations++;
  if (c->complete)
    st_writer_stats_add(&b->writers, chunk_key(c), f->end);
  else
    st_writer_stats_find(&b->writers, chunk_key(c));
  st_count_unread(b, r);
}

static bool discard(struct st_trace_buffer* b) {
  st_stats(b)->chunks_discarded++;
  return false;
}

static void note_commit(struct st_trace_buffer* b, struct st_sequence* s,
                        uint32_t chunk_id, uint32_t size) {
  struct st_buffer_stats* stats = st_stats(b);
  stats->chunks_written++;
  stats->bytes_written += size;
  if ((s->flags & ST_SEQUENCE_COMMITTED) &&
      st_is_before(chunk_id, s->newest_id)) {
    stats->chunks_committed_out_of_order++;
    return;
  }
  s->flags |= ST_SEQUENCE_COMMITTED;
  s->newest_id = chunk_id;
}

/* A chunk that has no record.  `skip` bytes of it have been read before. */
static bool add_chunk(struct st_trace_buffer* b, const struct st_chunk_copy* c,
                      uint32_t skip) {
  struct st_index* x = &b->index;
  if (b->full || !st_index_reserve(x, 2))
    return discard(b);
  uint8_t* copy = copy_payload(b, c);
  struct st_fragments f = scan_chunk(c, copy);
  if (skip && f.end <= skip)
    return false;
  uint32_t size =
      ST_RECORD_HEADER + (c->complete ? f.end : (uint32_t)c->payload_size);
  uint8_t* place = st_make_place(b, st_align_record(size));
  /* The index may have forgotten sequences to make room: look it up now. */
  struct st_sequence* s = place ? st_sequence_add(x, chunk_key(c)) : NULL;
  if (!s)
    return discard(b);
  if (copy != place + ST_RECORD_HEADER)
    memcpy(place + ST_RECORD_HEADER, copy, size - ST_RECORD_HEADER);
  /* Until it has its place in the sequence there is nothing to be read. */
  write_header(place, chunk_key(c), c->chunk_id, 0, size, ST_RECORD_PADDING);
  struct st_record* r = st_append_record(b, st_align_record(size));
  r->chunk_id = c->chunk_id;
  if (!st_sequence_link(x, s, x->tail - 1))
    return discard(b);
  r->read = (uint16_t)skip;
  describe(b, r, c, size, &f);
  note_commit(b, s, c->chunk_id, st_align_record(size));
  if (s->owed && s->last_id == c->chunk_id)
    note_return(b, s);
  return true;
}

/* A chunk that was read from, or whose turn has passed. */
static bool add_passed_chunk(struct st_trace_buffer* b, struct st_sequence* s,
                             const struct st_chunk_copy* c) {
  if (c->chunk_id != s->last_id)
    return st_is_before(c->chunk_id, s->run_id) ? discard(b) : false;
  if (!(s->flags & ST_SEQUENCE_GREW))
    return false;
  return add_chunk(b, c, s->consumed);
}

static void rewrite(struct st_trace_buffer* b, struct st_record* r,
                    const struct st_chunk_copy* c,
                    const struct st_fragments* f) {
  st_uncount_unread(b, r);
  memcpy(st_record_payload(b, r), b->bounce, f->end);
  struct st_record_header h;
  memcpy(&h, st_record_bytes(b, r), sizeof h);
  describe(b, r, c, h.size, f);
  st_stats(b)->chunks_rewritten++;
}

/* The record of a scraped chunk: rewritten in place.  If it was read to its
 * end it would soon be overwritten where it is, so the rest of the chunk goes
 * to the write position instead. */
static bool recommit(struct st_trace_buffer* b, uint32_t number,
                     const struct st_chunk_copy* c) {
  struct st_record* r = st_record_at(&b->index, number);
  if (!(r->flags & ST_RECORD_INCOMPLETE))
    return false;
  if (c->payload_size)
    memcpy(b->bounce, c->payload, c->payload_size);
  struct st_fragments f = scan_chunk(c, b->bounce);
  uint8_t chunk_flags = r->flags & ST_CHUNK_FIRST_CONTINUES;
  if (f.end < r->end || ST_RECORD_HEADER + f.end > st_record_size(r) ||
      (chunk_flags & ~f.flags))
    return false;
  bool relocates = b->policy == ST_RING && c->complete && r->read &&
                   !has_unread(r) && f.end > r->read;
  if (!relocates) {
    rewrite(b, r, c, &f);
    return true;
  }
  uint32_t skip = r->read;
  st_record_bytes(b, r)[offsetof(struct st_record_header, flags)] |=
      ST_RECORD_PADDING;
  st_sequence_unlink(&b->index, number);
  st_stats(b)->chunks_relocated++;
  return add_chunk(b, c, skip);
}

static bool copy_chunk(struct st_trace_buffer* b,
                       const struct st_chunk_copy* c) {
  if (c->payload_size > ST_MAX_RECORD - ST_RECORD_HEADER ||
      st_align_record(ST_RECORD_HEADER + (uint32_t)c->payload_size) > b->size) {
    st_stats(b)->abi_violations++;
    return false;
  }
  struct st_sequence* s = st_sequence_find(&b->index, chunk_key(c));
  uint32_t number;
  if (!s)
    return add_chunk(b, c, 0);
  if (st_record_find(&b->index, s, c->chunk_id, &number))
    return recommit(b, number, c);
  if ((s->flags & ST_SEQUENCE_BEGUN) && !st_is_before(s->last_id, c->chunk_id))
    return add_passed_chunk(b, s, c);
  return add_chunk(b, c, 0);
}

static void signal_watermark(struct st_trace_buffer* b) {
  pthread_mutex_lock(&b->signal_mutex);
  uint64_t one = 1;
  /* Fails only when the counter is full: then it is readable anyway. */
  if (st_own_fd_is_ours(&b->eventfd) &&
      write(b->eventfd.fd, &one, sizeof one) < 0)
    one = 0;
  pthread_mutex_unlock(&b->signal_mutex);
}

bool st_trace_buffer_copy_chunk(struct st_trace_buffer* b,
                                const struct st_chunk_copy* chunk) {
  pthread_mutex_lock(&b->mutex);
  uint64_t before = st_trace_buffer_unread(b);
  bool copied = copy_chunk(b, chunk);
  uint64_t after = st_trace_buffer_unread(b);
  pthread_mutex_unlock(&b->mutex);
  uint64_t mark = atomic_load_explicit(&b->watermark, memory_order_relaxed);
  if (before <= mark && after > mark)
    signal_watermark(b);
  return copied;
}

/* --- patches --- */

static bool patch(struct st_trace_buffer* b, uint32_t key, uint32_t chunk_id,
                  const struct st_patch_data* patches, size_t count,
                  bool has_more) {
  struct st_buffer_stats* stats = st_stats(b);
  struct st_sequence* s = st_sequence_find(&b->index, key);
  uint32_t number;
  if (!s || !st_record_find(&b->index, s, chunk_id, &number)) {
    stats->patches_failed++;
    return false;
  }
  struct st_record* r = st_record_at(&b->index, number);
  for (size_t i = 0; i < count; i++) {
    if ((uint64_t)patches[i].offset + ST_PATCH_SIZE > r->end) {
      stats->patches_failed++;
      return false;
    }
    memcpy(st_record_payload(b, r) + patches[i].offset, patches[i].data,
           ST_PATCH_SIZE);
    stats->patches_succeeded++;
  }
  if (has_more)
    return true;
  r->flags &= (uint8_t)~ST_CHUNK_NEEDS_PATCHING;
  st_record_bytes(b, r)[offsetof(struct st_record_header, flags)] &=
      (uint8_t)~ST_CHUNK_NEEDS_PATCHING;
  return true;
}

bool st_trace_buffer_patch(struct st_trace_buffer* b, uint16_t producer_id,
                           uint16_t writer_id, uint32_t chunk_id,
                           const struct st_patch_data* patches, size_t count,
                           bool has_more) {
  uint32_t key = (uint32_t)producer_id << 16 | writer_id;
  pthread_mutex_lock(&b->mutex);
  bool patched = patch(b, key, chunk_id, patches, count, has_more);
  pthread_mutex_unlock(&b->mutex);
  return patched;
}
