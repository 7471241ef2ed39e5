#include <stdlib.h>
#include <string.h>

#include "trace_buffer_internal.h"

/* The reader holds no lock while it parses fragments.  Under the lock it
 * selects a record, copies its readable fragments and marks them as read.  Then
 * it returns packets from the copy.  A packet with fragments in several records
 * is assembled record by record. */

/* The reader examines at most this number of records before it releases the
 * lock. */
enum { RECORDS_AT_ONCE = 1024 };

enum look {
  /* The reader's position has changed, so the caller has to look again. */
  LOOK_AGAIN,
  LOOK_END,  /* The read pass has reached its end. */
  LOOK_COPY, /* The scratch of the reader holds new fragments. */
  /* The next packet begins in this record and continues in later records. */
  LOOK_CHAIN,
};

/* Frees the records that the reader of a streamed buffer has read.  Returns
 * false if more records can be freed by another call. */
static bool reclaim(struct st_trace_buffer* b, uint64_t* carried) {
  struct st_index* x = &b->index;
  if (!st_is_streamed(b))
    return true;
  for (int i = 0; i < RECORDS_AT_ONCE; i++) {
    if (x->head == x->tail)
      return true;
    if (st_record_at(x, x->head)->sequence == ST_NO_SEQUENCE)
      st_evict_oldest(b);
    else if (!st_carry_oldest(b, carried))
      return true;
  }
  return false;
}

void st_trace_buffer_begin_read(struct st_trace_buffer* b) {
  struct st_reader* reader = &b->reader;
  uint64_t carried = 0;
  for (bool reclaimed = false; !reclaimed;) {
    pthread_mutex_lock(&b->mutex);
    reclaimed = reclaim(b, &carried);
    pthread_mutex_unlock(&b->mutex);
  }
  pthread_mutex_lock(&b->mutex);
  if (++reader->pass == 0)
    reader->pass = 1;
  reader->cursor = b->index.head;
  reader->pass_end = b->index.tail;
  reader->in_sequence = false;
  pthread_mutex_unlock(&b->mutex);
}

static uint32_t take_loss(struct st_sequence* s) {
  uint32_t loss = s->loss;
  s->loss = 0;
  return loss;
}

/* Adds the reader's counts to the stats: the reader counts without the lock.  A
 * loss that was not returned with a packet is given back to its sequence. */
static void settle(struct st_trace_buffer* b) {
  struct st_reader* reader = &b->reader;
  struct st_packet* p = &reader->packet;
  st_stats(b)->sequence_packet_loss += reader->flagged;
  st_stats(b)->abi_violations += reader->violations;
  reader->flagged = reader->violations = 0;
  if (!p->loss)
    return;
  struct st_sequence* s = st_sequence_find(
      &b->index, (uint32_t)p->producer_id << 16 | p->writer_id);
  if (s)
    s->loss |= p->loss;
  p->loss = 0;
}

static void set_writer(struct st_trace_buffer* b, uint32_t key, uint32_t loss) {
  struct st_packet* p = &b->reader.packet;
  p->producer_id = (uint16_t)(key >> 16);
  p->writer_id = (uint16_t)key;
  p->uid = b->producers[p->producer_id].uid;
  p->pid = b->producers[p->producer_id].pid;
  p->machine_id = b->producers[p->producer_id].machine_id;
  p->loss = loss;
}

/* Moves the reader's cursor to the next record in the buffer. */
static enum look step(struct st_trace_buffer* b) {
  b->reader.in_sequence = false;
  b->reader.cursor++;
  return LOOK_AGAIN;
}

/* Skips a sequence until the end of this read pass. */
static enum look stall(struct st_trace_buffer* b, struct st_sequence* s) {
  s->stalled = b->reader.pass;
  return step(b);
}

/* Copies the record's fragments from `read` to `limit` to the reader's
 * scratch. */
static enum look copy_out(struct st_trace_buffer* b, struct st_sequence* s,
                          struct st_record* r, uint32_t limit) {
  struct st_reader* reader = &b->reader;
  uint32_t size = limit - r->read;
  memcpy(reader->scratch, st_record_payload(b, r) + r->read, size);
  reader->cur = reader->scratch;
  reader->end = reader->scratch + size;
  set_writer(b, s->key, take_loss(s));
  st_consume(b, r, limit, ST_READER);
  return LOOK_COPY;
}

/* Leaves a record that was read to its end.  If it is the record at the cursor,
 * the cursor moves to the next record.  Otherwise the reader continues with the
 * next record of the sequence.  An incomplete record stays in the sequence,
 * because it may still grow. */
static enum look leave_record(struct st_trace_buffer* b,
                              struct st_sequence* s) {
  struct st_index* x = &b->index;
  struct st_reader* reader = &b->reader;
  const struct st_record* r = st_record_at(x, s->first);
  if (r->flags & ST_RECORD_CORRUPTED)
    s->loss |= ST_LOSS_CHUNK_CORRUPTED;
  if (r->flags & ST_RECORD_ABORTED)
    s->loss |= ST_LOSS_WRITER_ABORT;
  if (r->flags & ST_RECORD_INCOMPLETE)
    return stall(b, s);
  bool arrived = s->first == reader->cursor;
  uint32_t next_id = r->chunk_id + 1;
  st_erase_first(b, s);
  if (arrived)
    return step(b);
  if (st_record_at(x, s->first)->chunk_id != next_id)
    reader->gap = true;
  return LOOK_AGAIN;
}

/* Handles a packet that begins in the first record of its sequence and
 * continues in later records. */
static enum look look_for_chain(struct st_trace_buffer* b,
                                struct st_sequence* s, struct st_chain* chain) {
  if (st_find_chain(&b->index, s, b->reader.gap, chain)) {
    st_stats(b)->readaheads_succeeded++;
    set_writer(b, s->key, take_loss(s));
    return LOOK_CHAIN;
  }
  st_stats(b)->readaheads_failed++;
  if (!chain->loss)
    return stall(b, s);
  st_consume_chain(b, chain, ST_READER);
  s->loss |= chain->loss;
  return LOOK_AGAIN;
}

/* Makes one step of reading in the first record of a sequence. */
static enum look look_at_sequence(struct st_trace_buffer* b,
                                  struct st_sequence* s,
                                  struct st_chain* chain) {
  struct st_record* r = st_record_at(&b->index, s->first);
  if (st_is_continuation(r)) {
    st_skip_orphan(b, s, r, ST_READER);
    return LOOK_AGAIN;
  }
  uint32_t limit = st_whole_packets_end(r);
  if (r->read < limit)
    return copy_out(b, s, r, limit);
  if (st_nothing_left(r))
    return leave_record(b, s);
  return look_for_chain(b, s, chain);
}

/* Examines the record at the cursor, or an earlier record of its sequence. */
static enum look look_at_cursor(struct st_trace_buffer* b,
                                struct st_chain* chain) {
  struct st_index* x = &b->index;
  struct st_reader* reader = &b->reader;
  const struct st_record* r = st_record_at(x, reader->cursor);
  if (r->sequence == ST_NO_SEQUENCE)
    return step(b);
  struct st_sequence* s = st_sequence_of(x, r);
  if (!reader->in_sequence) {
    reader->in_sequence = true;
    reader->gap = false;
    st_sequence_note_gap(x, s);
  }
  return s->stalled == reader->pass ? step(b) : look_at_sequence(b, s, chain);
}

static enum look look(struct st_trace_buffer* b, struct st_chain* chain) {
  struct st_reader* reader = &b->reader;
  struct st_index* x = &b->index;
  if (!st_record_exists(x, reader->cursor) &&
      st_is_before(reader->cursor, x->head)) {
    reader->cursor = x->head;
    reader->in_sequence = false;
  }
  enum look result = LOOK_AGAIN;
  for (uint32_t left = RECORDS_AT_ONCE; left && result == LOOK_AGAIN; left--) {
    if (!st_is_before(reader->cursor, reader->pass_end))
      return LOOK_END;
    result = look_at_cursor(b, chain);
  }
  return result;
}

/* Returns record `i` of a chain, or NULL if that record was evicted. */
static struct st_record* chain_record(struct st_trace_buffer* b,
                                      const struct st_chain* chain,
                                      uint32_t number, uint32_t i) {
  struct st_index* x = &b->index;
  if (!st_record_exists(x, number))
    return NULL;
  struct st_record* r = st_record_at(x, number);
  if (r->sequence == ST_NO_SEQUENCE)
    return NULL;
  if (st_sequence_of(x, r)->key != chain->key)
    return NULL;
  return r->chunk_id == chain->first_id + i ? r : NULL;
}

static bool reserve_whole(struct st_reader* reader, size_t size) {
  if (size <= reader->whole_capacity)
    return true;
  size_t capacity = 2 * size;
  uint8_t* whole = realloc(reader->whole, capacity);
  if (!whole)
    return false;
  reader->whole = whole;
  reader->whole_capacity = capacity;
  return true;
}

/* Consumes the next fragment of a record, and appends it to the assembled
 * packet if `room` is true.  An empty record inside a chain has no fragment. */
static bool append_fragment(struct st_trace_buffer* b, struct st_record* r,
                            bool room, size_t* size) {
  if (st_nothing_left(r))
    return true;
  const uint8_t* payload = st_record_payload(b, r);
  uint64_t n = 0;
  const uint8_t* data =
      st_get_fragment(payload + r->read, payload + r->end, &n);
  if (data && room) {
    memcpy(b->reader.whole + *size, data, n);
    *size += n;
  }
  st_consume(b, r, st_fragment_end(b, r), ST_READER);
  return data && room;
}

/* Moves the fragment of record `i` of a chain into the assembled packet.
 * *number becomes the number of the next record. */
static bool take_fragment(struct st_trace_buffer* b,
                          const struct st_chain* chain, uint32_t i,
                          uint32_t* number, size_t* size) {
  size_t needed = *size + ST_MAX_RECORD + ST_READ_SLACK;
  bool room = reserve_whole(&b->reader, needed), taken = false;
  pthread_mutex_lock(&b->mutex);
  struct st_record* r = chain_record(b, chain, *number, i);
  if (r) {
    taken = append_fragment(b, r, room, size);
    *number = r->next;
  }
  pthread_mutex_unlock(&b->mutex);
  return taken;
}

/* Assembles a packet from the fragments of a chain.  Returns false if a record
 * of the chain was evicted meanwhile.  The fragments in the remaining records
 * are then skipped as orphans. */
static bool reassemble(struct st_trace_buffer* b, const struct st_chain* chain,
                       struct st_packet* out) {
  struct st_reader* reader = &b->reader;
  size_t size = 0;
  uint32_t number = chain->first;
  bool whole = true, more = true;
  for (uint32_t i = 0; whole && more; i++) {
    more = number != chain->last;
    whole = take_fragment(b, chain, i, &number, &size);
  }
  if (!whole)
    reader->packet.loss |= ST_LOSS_REASSEMBLY_GAP;
  if (!whole)
    return false;
  *out = reader->packet;
  out->data = reader->whole;
  out->size = size;
  return true;
}

static bool broken_copy(struct st_reader* reader) {
  reader->violations++;
  reader->packet.loss |= ST_LOSS_CHUNK_CORRUPTED;
  reader->cur = reader->end;
  return false;
}

/* Returns the next packet in the reader's scratch.  Checks the fragment sizes
 * again, because a patch may have changed them. */
static bool next_in_scratch(struct st_reader* reader, struct st_packet* out) {
  while (reader->cur < reader->end) {
    const uint8_t* p = reader->cur;
    uint64_t size;
    p = st_get_fragment(p, reader->end, &size);
    if (!p)
      return broken_copy(reader);
    reader->cur = p + size;
    if (!size)
      continue;
    *out = reader->packet;
    out->data = p;
    out->size = size;
    return true;
  }
  return false;
}

static bool hand_out(struct st_reader* reader, struct st_packet* out) {
  reader->packet.loss = 0;
  if (!out->loss)
    return true;
  out->loss |= ST_LOSS_PRESENT;
  reader->flagged++;
  return true;
}

bool st_trace_buffer_read_packet(struct st_trace_buffer* b,
                                 struct st_packet* out) {
  struct st_reader* reader = &b->reader;
  struct st_chain chain;
  for (;;) {
    if (next_in_scratch(reader, out))
      return hand_out(reader, out);
    pthread_mutex_lock(&b->mutex);
    settle(b);
    enum look found = look(b, &chain);
    pthread_mutex_unlock(&b->mutex);
    if (found == LOOK_END)
      return false;
    if (found == LOOK_CHAIN && reassemble(b, &chain, out))
      return hand_out(reader, out);
  }
}
