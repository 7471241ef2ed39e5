#include <string.h>
#include <unistd.h>

#include "trace_buffer_internal.h"
#include "uncached_copy.h"

/* Larger buffers do not fit into the caches of a common processor core. */
enum { MAX_CACHED_SIZE = 4 << 20 };

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

struct st_fragments st_scan_fragments(const uint8_t* payload, size_t size,
                                      uint32_t count) {
  const uint8_t *p = payload, *end = payload + size, *last = payload;
  uint8_t broken = 0;
  uint32_t good = 0;
  for (; good < count && !broken; good++) {
    uint64_t n;
    const uint8_t* data = st_get_fragment(p, end, &n);
    if (!data) {
      broken =
          n == ST_MAX_MESSAGE_SIZE ? ST_RECORD_ABORTED : ST_RECORD_CORRUPTED;
      break;
    }
    last = p;
    p = data + n;
  }
  return (struct st_fragments){
      .count = good,
      .last = (uint32_t)(last - payload),
      .end = (uint32_t)(p - payload),
      .broken = broken,
  };
}

void st_find_last_fragment(const struct st_trace_buffer* b,
                           struct st_record* r) {
  const uint8_t* payload = st_record_payload(b, r);
  const uint8_t *p = payload + r->read, *end = payload + r->end, *last = p;
  r->flags &= (uint8_t)~ST_RECORD_CORRUPTED;
  while (p < end) {
    uint64_t n;
    const uint8_t* data = st_get_fragment(p, end, &n);
    last = p;
    if (!data) {
      r->flags |= ST_RECORD_CORRUPTED;
      break;
    }
    p = data + n;
  }
  r->last = (uint16_t)(last - payload);
}

static uint32_t chunk_key(const struct st_chunk_copy* c) {
  return (uint32_t)c->producer_id << 16 | c->writer_id;
}

static uint8_t chunk_flags(const struct st_chunk_copy* c) {
  uint8_t flags =
      c->flags & (ST_CHUNK_FIRST_CONTINUES | ST_CHUNK_LAST_CONTINUES |
                  ST_CHUNK_NEEDS_PATCHING);
  return c->complete ? flags : flags | ST_RECORD_INCOMPLETE;
}

/* Returns whether `size` bytes fit at the write position without evicting
 * unread data and without passing the end of the ring. */
static bool has_room(const struct st_trace_buffer* b, uint32_t size) {
  const struct st_index* x = &b->index;
  uint64_t room = st_free_bytes(b);
  for (uint32_t n = x->head; room < size && n != x->tail; n++) {
    const struct st_record* r = st_record_at(x, n);
    if (b->is_file || r->sequence != ST_NO_SEQUENCE)
      return false;
    room += st_record_size(r);
  }
  return room >= size && st_bytes_to_end(b) >= size;
}

/* Copies the payload of a chunk to its final place in the ring if there is
 * room, else to the bounce memory.  A private payload is validated where it
 * is: it is copied once, when its place is known. */
static const uint8_t* copy_payload(struct st_trace_buffer* b,
                                   const struct st_chunk_copy* c) {
  if (c->is_private)
    return c->payload;
  uint32_t most = st_align_record(ST_RECORD_HEADER + (uint32_t)c->payload_size);
  uint8_t* copy = b->bounce;
  if (has_room(b, most))
    copy = st_write_place(b) + ST_RECORD_HEADER;
  if (c->payload_size)
    memcpy(copy, c->payload, c->payload_size);
  return copy;
}

/* Writes the state of a record to its header and to its index entry. */
static void describe(struct st_trace_buffer* b, struct st_record* r,
                     uint32_t size, uint8_t flags,
                     const struct st_fragments* f) {
  const struct st_sequence* s = st_sequence_of(&b->index, r);
  st_write_header(st_record_bytes(b, r), s->key, r->chunk_id, f->count, size,
                  flags);
  r->end = (uint16_t)f->end;
  r->last = (uint16_t)f->last;
  r->flags = flags;
  if (r->read)
    st_find_last_fragment(b, r);
  st_count_unread(b, r);
}

static bool discard(struct st_trace_buffer* b) {
  st_stats(b)->chunks_discarded++;
  return false;
}

static bool violation(struct st_trace_buffer* b) {
  st_stats(b)->abi_violations++;
  return false;
}

static void note_commit(struct st_trace_buffer* b, const struct st_sequence* s,
                        const struct st_record* r) {
  struct st_buffer_stats* stats = st_stats(b);
  stats->chunks_written++;
  stats->bytes_written += st_record_size(r);
  if (st_record_at(&b->index, s->last) != r)
    stats->chunks_committed_out_of_order++;
}

static void copy_to_place(const struct st_trace_buffer* b, uint8_t* place,
                          const uint8_t* copy, size_t size) {
  if (b->size > MAX_CACHED_SIZE)
    st_copy_uncached(place, copy, size);
  else
    memcpy(place, copy, size);
}

/* Adds a record for a chunk that has none.  The first `skip` bytes of the chunk
 * were read earlier. */
static bool add_chunk(struct st_trace_buffer* b, const struct st_chunk_copy* c,
                      const uint8_t* copy, const struct st_fragments* f,
                      uint32_t skip) {
  struct st_index* x = &b->index;
  uint32_t size =
      ST_RECORD_HEADER + (c->complete ? f->end : (uint32_t)c->payload_size);
  if (!st_index_reserve(x, 2))
    return discard(b);
  uint8_t* place = st_make_place(b, st_align_record(size));
  /* The sequence is looked up after st_make_place(), because that may drop
   * sequences. */
  struct st_sequence* s = place ? st_sequence_add(x, chunk_key(c)) : NULL;
  if (!s)
    return discard(b);
  if (copy != place + ST_RECORD_HEADER)
    copy_to_place(b, place + ST_RECORD_HEADER, copy, f->end);
  /* The record is padding until it is linked: recovery must not read it
   * before. */
  st_write_header(place, chunk_key(c), c->chunk_id, 0, size, ST_RECORD_PADDING);
  struct st_record* r = st_append_record(b, st_align_record(size));
  r->chunk_id = c->chunk_id;
  if (!st_sequence_link(x, s, x->tail - 1)) {
    r->flags = ST_RECORD_PADDING;
    return discard(b);
  }
  r->read = (uint16_t)skip;
  describe(b, r, size, chunk_flags(c), f);
  note_commit(b, s, r);
  return true;
}

/* Returns whether a re-committed chunk may replace the record of its earlier
 * commit. */
static bool may_become(const struct st_trace_buffer* b,
                       const struct st_record* r, uint8_t flags,
                       const struct st_fragments* f) {
  struct st_record_header h;
  memcpy(&h, st_record_bytes(b, r), sizeof h);
  uint8_t had = r->flags & (ST_CHUNK_FIRST_CONTINUES | ST_CHUNK_LAST_CONTINUES |
                            ST_CHUNK_NEEDS_PATCHING);
  return f->end >= r->end && ST_RECORD_HEADER + f->end <= h.size &&
         (had & flags) == had;
}

/* Rewrites a record in place with a longer version of its chunk.  The record's
 * read position stays. */
static bool rewrite(struct st_trace_buffer* b, struct st_record* r,
                    const struct st_chunk_copy* c, const uint8_t* copy,
                    const struct st_fragments* f) {
  struct st_record_header h;
  memcpy(&h, st_record_bytes(b, r), sizeof h);
  uint8_t flags = r->flags;
  if (c->complete)
    flags &= (uint8_t)~ST_RECORD_INCOMPLETE;
  if (f->end == r->end) {
    r->flags = flags;
    h.flags = flags & (uint8_t)~ST_RECORD_UNREAD;
    memcpy(st_record_bytes(b, r), &h, sizeof h);
    return true;
  }
  st_uncount_unread(b, r);
  memcpy(st_record_payload(b, r), copy, f->end);
  flags = (flags | chunk_flags(c)) &
          (uint8_t) ~(ST_RECORD_UNREAD | ST_RECORD_CORRUPTED);
  describe(b, r, h.size, flags, f);
  st_stats(b)->chunks_rewritten++;
  return true;
}

/* Handles the re-commit of a scraped chunk that has a record.  The chunk's new
 * fragments are usually written into this record.  But if the record was read
 * to its end, the record would soon be overwritten.  Then the new fragments are
 * added as another record, at the write position.  In a streamed buffer this
 * holds for a chunk that is scraped again, too: when the ring wraps, the record
 * of a slow writer is the oldest, and would be overwritten before it is read. */
static bool recommit(struct st_trace_buffer* b, struct st_sequence* s,
                     uint32_t number, const struct st_chunk_copy* c,
                     const uint8_t* copy, const struct st_fragments* f) {
  struct st_record* r = st_record_at(&b->index, number);
  if (!may_become(b, r, chunk_flags(c), f))
    return violation(b);
  bool relocates = b->policy == ST_RING && (c->complete || st_is_streamed(b)) &&
                   (r->flags & ST_RECORD_INCOMPLETE) && r->read == r->end &&
                   f->end > r->end && number == s->first;
  if (!relocates)
    return rewrite(b, r, c, copy, f);
  uint32_t skip = r->end;
  st_stats(b)->chunks_relocated++;
  st_erase_first_in_ring(b, s);
  return add_chunk(b, c, copy, f, skip);
}

static void note_violation(struct st_trace_buffer* b,
                           const struct st_fragments* f) {
  if (f->broken == ST_RECORD_CORRUPTED)
    st_stats(b)->abi_violations++;
}

static void note_abort(struct st_trace_buffer* b, struct st_sequence* s) {
  st_stats(b)->trace_writer_packet_loss++;
  s->loss |= ST_LOSS_WRITER_ABORT;
}

/* Returns whether the chunk is the one that was read last from a streamed
 * buffer, with the same data: a scraped chunk of an idle thread, scraped again,
 * or a complete chunk that was scraped and read before its commit arrived.  In
 * other buffers such a chunk counts as discarded, as in Perfetto. */
static bool was_streamed(const struct st_trace_buffer* b,
                         const struct st_sequence* s,
                         const struct st_chunk_copy* c,
                         const struct st_fragments* f) {
  return st_is_streamed(b) && c->chunk_id == s->last_id &&
         f->end == s->last_end;
}

/* Returns whether later chunks of the sequence were read or evicted before this
 * chunk.  A chunk that was removed while incomplete may be committed again with
 * more data; *skip is then the number of bytes that were read the first
 * time. */
static bool has_passed(const struct st_sequence* s,
                       const struct st_chunk_copy* c,
                       const struct st_fragments* f, uint32_t* skip) {
  if (!(s->flags & ST_SEQUENCE_BEGUN) || st_is_before(s->last_id, c->chunk_id))
    return false;
  if (c->chunk_id != s->last_id || !(s->flags & ST_SEQUENCE_MAY_GROW) ||
      f->end <= s->last_end)
    return true;
  *skip = s->last_end;
  return false;
}

static bool place_chunk(struct st_trace_buffer* b,
                        const struct st_chunk_copy* c, const uint8_t* copy,
                        const struct st_fragments* f) {
  size_t size = ST_RECORD_HEADER + (c->complete ? f->end : c->payload_size);
  note_violation(b, f);
  if (st_align_record((uint32_t)size) > b->size)
    return violation(b);
  st_writer_stats_add(&b->writers, chunk_key(c), f->end);
  struct st_sequence* s = st_sequence_add(&b->index, chunk_key(c));
  if (!s)
    return discard(b);
  if (f->broken == ST_RECORD_ABORTED)
    note_abort(b, s);
  uint32_t skip = 0, number;
  if (has_passed(s, c, f, &skip))
    return was_streamed(b, s, c, f) || discard(b);
  if (st_record_find(&b->index, s, c->chunk_id, &number))
    return recommit(b, s, number, c, copy, f);
  return add_chunk(b, c, copy, f, skip);
}

static bool copy_chunk(struct st_trace_buffer* b,
                       const struct st_chunk_copy* c) {
  if (b->full)
    return discard(b);
  if (c->payload_size > ST_MAX_RECORD - ST_RECORD_HEADER)
    return violation(b);
  const uint8_t* copy = copy_payload(b, c);
  struct st_fragments f =
      st_scan_fragments(copy, c->payload_size, c->fragments);
  return place_chunk(b, c, copy, &f);
}

static void signal_watermark(struct st_trace_buffer* b) {
  pthread_mutex_lock(&b->signal_mutex);
  uint64_t one = 1;
  /* This write fails only if the counter of the eventfd is full, and then the
   * eventfd is readable anyway. */
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

static bool write_patches(struct st_trace_buffer* b, const struct st_record* r,
                          const struct st_patch_data* patches, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if ((uint64_t)patches[i].offset + ST_PATCH_SIZE > r->end)
      return false;
    memcpy(st_record_payload(b, r) + patches[i].offset, patches[i].data,
           ST_PATCH_SIZE);
  }
  return true;
}

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
  bool written = write_patches(b, r, patches, count);
  st_find_last_fragment(b, r);
  if (!written) {
    stats->patches_failed++;
    return false;
  }
  stats->patches_succeeded += count;
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
