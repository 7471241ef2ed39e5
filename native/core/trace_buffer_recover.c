#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "trace_buffer_internal.h"

/* Maps the whole file as a private copy, so that recovery does not change the
 * file. */
static void* map_file(int fd, size_t* size) {
  struct stat st;
  if (fstat(fd, &st) || st.st_size < (off_t)(ST_RING_OFFSET + ST_RING_PAGE))
    return MAP_FAILED;
  *size = (size_t)st.st_size;
  return mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
}

static bool is_ring(struct st_ring_header* h, size_t mapping_size) {
  uint64_t oldest = atomic_load(&h->oldest), write = atomic_load(&h->write);
  return !memcmp(h->magic, ST_RING_MAGIC, sizeof h->magic) &&
         h->version == ST_RING_VERSION &&
         (h->policy == ST_RING || h->policy == ST_DISCARD) && h->ring_size &&
         h->ring_size % ST_RING_PAGE == 0 &&
         h->ring_size == mapping_size - ST_RING_OFFSET &&
         (oldest | write) % ST_RECORD_ALIGN == 0 && oldest <= write &&
         write - oldest <= h->ring_size;
}

/* Reads the header of the record at a position.  Returns false if the header is
 * invalid.  *size becomes the record's size, rounded up to 16. */
static bool read_header(const struct st_trace_buffer* b, uint64_t position,
                        uint64_t end, struct st_record_header* h,
                        uint32_t* size) {
  uint64_t offset = position % b->size;
  memcpy(h, b->ring + offset, sizeof *h);
  *size = st_align_record(h->size);
  return !memcmp(h->magic, "CHU", sizeof h->magic) &&
         h->size >= ST_RECORD_HEADER && *size <= b->size - offset &&
         *size <= end - position;
}

/* A relocated chunk has two records if the process died before it marked the
 * older record as padding.  Removes the older one. */
static void replace_older(struct st_index* x, const struct st_sequence* s,
                          uint32_t chunk_id) {
  uint32_t number;
  if (st_record_find(x, s, chunk_id, &number))
    st_sequence_unlink(x, number);
}

static bool restore_record(struct st_trace_buffer* b,
                           const struct st_record_header* h, uint32_t size) {
  struct st_index* x = &b->index;
  if (!st_index_reserve(x, 1))
    return false;
  struct st_record* r = st_append_record(b, size);
  r->chunk_id = h->chunk_id;
  if (h->flags & ST_RECORD_PADDING) {
    r->flags = ST_RECORD_PADDING;
    return true;
  }
  uint32_t key = (uint32_t)h->producer_id << 16 | h->writer_id;
  struct st_sequence* s = st_sequence_add(x, key);
  if (!s)
    return false;
  replace_older(x, s, h->chunk_id);
  if (!st_sequence_link(x, s, x->tail - 1))
    return true;
  struct st_fragments f = st_scan_fragments(
      st_record_payload(b, r), h->size - ST_RECORD_HEADER, h->fragments);
  r->last = (uint16_t)f.last;
  r->end = (uint16_t)f.end;
  r->flags = h->flags & (uint8_t)~ST_RECORD_UNREAD;
  st_count_unread(b, r);
  return true;
}

/* Ends all records that were waiting for more data.  An incomplete chunk keeps
 * its finished fragments.  A chunk that needs patches loses its last packet,
 * which continues in the next chunk. */
static void settle_waiting(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  for (uint32_t n = x->head; n != x->tail; n++) {
    struct st_record* r = st_record_at(x, n);
    r->flags &= (uint8_t)~ST_RECORD_INCOMPLETE;
    if (!(r->flags & ST_CHUNK_NEEDS_PATCHING))
      continue;
    if (r->flags & ST_CHUNK_LAST_CONTINUES)
      r->end = r->last;
    r->flags |= ST_RECORD_ABORTED;
    r->flags &= (uint8_t) ~(ST_CHUNK_NEEDS_PATCHING | ST_CHUNK_LAST_CONTINUES);
  }
}

/* Sets a loss for each sequence whose oldest chunks were overwritten. */
static void mark_overwritten(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  if (!st_stats(b)->chunks_overwritten)
    return;
  for (uint32_t i = 0; i < x->sequence_count; i++) {
    struct st_sequence* s = &x->sequences[i];
    if (s->records && st_record_at(x, s->first)->chunk_id != 0)
      s->loss |= ST_LOSS_OVERWRITE;
  }
}

struct st_trace_buffer* st_trace_buffer_recover(int fd) {
  size_t mapping_size = 0;
  struct st_ring_header* h = map_file(fd, &mapping_size);
  if (h == MAP_FAILED)
    return NULL;
  if (!is_ring(h, mapping_size)) {
    munmap(h, mapping_size);
    errno = EINVAL;
    return NULL;
  }
  struct st_trace_buffer* b = st_trace_buffer_adopt(
      h, mapping_size, (size_t)h->ring_size, (enum st_fill_policy)h->policy);
  if (!b)
    return NULL;
  uint64_t position = st_oldest(b), end = st_write_position(b);
  uint64_t wraps = h->stats.write_wrap_count;
  atomic_store(&h->write, position);
  struct st_record_header record;
  for (uint32_t size; position < end; position += size) {
    if (!read_header(b, position, end, &record, &size))
      break;
    if (!restore_record(b, &record, size)) {
      st_trace_buffer_destroy(b);
      errno = ENOMEM;
      return NULL;
    }
  }
  h->stats.write_wrap_count = wraps;
  settle_waiting(b);
  mark_overwritten(b);
  return b;
}

enum { COPY_STEP = ST_MAX_RECORD + 1 };

static struct st_trace_buffer* new_like(const struct st_trace_buffer* from) {
  struct st_trace_buffer* b =
      st_trace_buffer_create(from->size, from->policy, -1);
  if (b)
    st_index_destroy(&b->index);
  return b;
}

static void copy_scratch(struct st_reader* to, const struct st_reader* from) {
  uint8_t *scratch = to->scratch, *whole = to->whole;
  size_t left = (size_t)(from->end - from->cur);
  *to = *from;
  to->scratch = scratch;
  to->whole = whole;
  to->whole_capacity = 0;
  to->cur = scratch;
  to->end = scratch + left;
  if (left)
    memcpy(scratch, from->cur, left);
}

static void copy_producers(struct st_trace_buffer* to,
                           const struct st_trace_buffer* from) {
  for (uint32_t i = 0; i < to->index.sequence_count; i++) {
    uint32_t producer = to->index.sequences[i].key >> 16;
    to->producers[producer] = from->producers[producer];
  }
}

/* Copies all state of a buffer except the bytes of its ring. */
static bool copy_state(struct st_trace_buffer* to,
                       struct st_trace_buffer* from) {
  pthread_mutex_lock(&from->mutex);
  bool copied = st_index_copy(&to->index, &from->index) &&
                st_writer_stats_copy(&to->writers, &from->writers);
  *to->header = *from->header;
  to->full = from->full;
  to->pad_ahead = from->pad_ahead;
  if (copied)
    copy_producers(to, from);
  atomic_store_explicit(&to->unread, st_trace_buffer_unread(from),
                        memory_order_relaxed);
  pthread_mutex_unlock(&from->mutex);
  struct st_buffer_stats* stats = st_stats(to);
  stats->bytes_read = stats->chunks_read = 0;
  stats->readaheads_succeeded = stats->readaheads_failed = 0;
  copy_scratch(&to->reader, &from->reader);
  return copied;
}

/* Copies `size` bytes of the ring, from `position` on.  The source may have
 * overwritten the first of these bytes already.  The copied bytes before the
 * returned position are invalid. */
static uint64_t copy_bytes(struct st_trace_buffer* to,
                           struct st_trace_buffer* from, uint64_t position,
                           size_t size) {
  size_t offset = (size_t)(position % from->size);
  pthread_mutex_lock(&from->mutex);
  memcpy(to->ring + offset, from->ring + offset, size);
  uint64_t oldest = st_oldest(from);
  pthread_mutex_unlock(&from->mutex);
  return oldest < position + size ? oldest : position + size;
}

struct st_trace_buffer* st_trace_buffer_clone(struct st_trace_buffer* from) {
  struct st_trace_buffer* to = new_like(from);
  if (!to)
    return NULL;
  if (!copy_state(to, from)) {
    st_trace_buffer_destroy(to);
    return NULL;
  }
  uint64_t position = st_oldest(to), end = st_write_position(to), lost = 0;
  while (position < end) {
    size_t to_end = to->size - (size_t)(position % to->size);
    size_t size = end - position < COPY_STEP ? end - position : COPY_STEP;
    if (size > to_end)
      size = to_end;
    uint64_t overwritten = copy_bytes(to, from, position, size);
    if (overwritten > position)
      lost = overwritten;
    position += size;
  }
  while (st_oldest(to) < lost && to->index.head != to->index.tail)
    st_evict_oldest(to);
  return to;
}
