#include <string.h>

#include "trace_buffer_internal.h"

/* A stream must not lose data.  A record that its reader cannot read yet (the
 * rest of a packet, or a patch, is missing) must not be overwritten.  So such
 * records are moved to the write position between two read passes:
 *
 *   | waits | free ...          | read | unread |  free |
 *   | free ...                  | read | unread | waits |
 *
 * Limits: at most an eighth of the buffer is moved in one pass.  Further
 * records stay and are overwritten eventually, so a producer that never sends
 * the missing data does not block the others. */

enum { CARRIED_SHARE = 8 };

bool st_is_streamed(const struct st_trace_buffer* b) {
  return b->policy == ST_RING &&
         atomic_load_explicit(&b->watermark, memory_order_relaxed) !=
             UINT64_MAX;
}

/* Returns whether the last read pass had to skip the buffer's oldest record. */
static bool oldest_waits(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  const struct st_record* r = st_record_at(x, x->head);
  if (!st_is_before(x->head, b->reader.pass_end) ||
      (r->flags & ST_RECORD_INCOMPLETE))
    return false;
  return st_sequence_of(x, r)->stalled == b->reader.pass;
}

/* Returns whether the oldest record has to be moved now.  More than an eighth
 * of the buffer must be in use, and the record with its padding must fit
 * without an eviction. */
static bool is_due(const struct st_trace_buffer* b) {
  uint64_t used = st_write_position(b) - st_oldest(b);
  return used > b->size / CARRIED_SHARE &&
         used + 2 * (ST_MAX_RECORD + 1) <= b->size;
}

static void note_unread_again(struct st_trace_buffer* b, struct st_record* r,
                              const struct st_record* was) {
  r->read = was->read;
  r->last = was->last;
  r->end = was->end;
  r->flags = was->flags & (uint8_t)~ST_RECORD_UNREAD;
  st_count_unread(b, r);
  struct st_buffer_stats* stats = st_stats(b);
  stats->chunks_written++;
  stats->bytes_written += st_record_size(r);
  stats->chunks_relocated++;
}

static void carry_oldest(struct st_trace_buffer* b) {
  struct st_index* x = &b->index;
  struct st_record* was = st_record_at(x, x->head);
  uint32_t size = st_record_size(was);
  /* The buffer has room for the record, so no record is evicted here. */
  uint8_t* place = st_make_place(b, size);
  memcpy(place, st_record_bytes(b, was), ST_RECORD_HEADER + was->end);
  struct st_record* r = st_append_record(b, size);
  st_uncount_unread(b, was);
  st_sequence_replace(x, x->head, x->tail - 1);
  note_unread_again(b, r, was);
  st_evict_oldest(b);
}

bool st_carry_oldest(struct st_trace_buffer* b, uint64_t* carried) {
  if (!st_is_streamed(b) || !oldest_waits(b) || !is_due(b) ||
      !st_index_reserve(&b->index, 2))
    return false;
  uint32_t size = st_record_size(st_record_at(&b->index, b->index.head));
  if (*carried + size > b->size / CARRIED_SHARE)
    return false;
  *carried += size;
  carry_oldest(b);
  return true;
}
