#include <stdlib.h>
#include <string.h>

#include "trace_buffer_internal.h"

/* The reader never holds the lock while it looks at fragments.  Under the
 * lock it picks a record, copies what can be read of it, and notes it as
 * read; packets are then taken out of the copy.  A packet whose fragments lie
 * in several records is put together record by record. */

enum { RECORDS_AT_ONCE = 1024 /* looked at under one lock */ };

enum look {
  LOOK_AGAIN, /* something was settled; go on */
  LOOK_END,   /* the pass is over */
  LOOK_COPY,  /* scratch holds fragments */
  LOOK_CHAIN, /* a packet begins that goes on in later records */
};

/* A packet of several records. */
struct chain {
  uint32_t first, last; /* record numbers */
  uint32_t first_id;    /* chunk id of the first one */
  uint32_t key;
};

/* Frees what has been read.  False: there is more to free. */
static bool reclaim(struct st_trace_buffer* b, uint64_t* carried) {
  struct st_index* x = &b->index;
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
  pthread_mutex_unlock(&b->mutex);
}

/* --- under the lock --- */

static uint32_t take_loss(struct st_sequence* s) {
  uint32_t loss = s->loss;
  s->loss = 0;
  return loss;
}

/* Counts what was handed out without the lock; a loss that no packet came to
 * carry goes back to its sequence. */
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

static enum look stall(struct st_trace_buffer* b, struct st_sequence* s) {
  s->stalled = b->reader.pass;
  return LOOK_AGAIN;
}

/* The record has been read to its end.  One that may still grow stays. */
static void finish_record(struct st_trace_buffer* b, struct st_sequence* s,
                          uint32_t number) {
  struct st_record* r = st_record_at(&b->index, number);
  if (r->flags & ST_RECORD_ABORTED)
    s->loss |= ST_LOSS_WRITER_ABORT;
  if (r->flags & ST_RECORD_CORRUPTED)
    s->loss |= ST_LOSS_CHUNK_CORRUPTED;
  r->flags &= (uint8_t)~ST_RECORD_BROKEN;
  r->read = r->end;
  st_uncount_unread(b, r);
  if (r->flags & ST_RECORD_INCOMPLETE) {
    stall(b, s);
    return;
  }
  st_stats(b)->chunks_read++;
  st_stats(b)->bytes_read += st_record_size(r);
  st_sequence_unlink(&b->index, number);
}

static bool continues(const struct st_record* r) {
  return r->flags & ST_CHUNK_LAST_CONTINUES;
}

/* What the first look at a record says about what isn't there. */
static void begin_record(struct st_sequence* s, const struct st_record* r) {
  if (!st_sequence_pass(s, r->chunk_id))
    s->loss |= ST_LOSS_READ_GAP;
  if (r->end && (r->flags & ST_CHUNK_FIRST_CONTINUES))
    s->loss |= ST_LOSS_ORPHAN_CONTINUATION;
}

/* Copies fragments [read, limit) to scratch. */
static enum look copy_out(struct st_trace_buffer* b, struct st_sequence* s,
                          uint32_t number, uint32_t limit) {
  struct st_reader* reader = &b->reader;
  struct st_record* r = st_record_at(&b->index, number);
  uint32_t size = limit - r->read;
  memcpy(reader->scratch, st_record_payload(b, r) + r->read, size);
  reader->cur = reader->scratch;
  reader->end = reader->scratch + size;
  reader->skip_fragment = r->read == 0 && (r->flags & ST_CHUNK_FIRST_CONTINUES);
  set_writer(b, s->key, take_loss(s));
  r->read = (uint16_t)limit;
  if (limit == r->end)
    finish_record(b, s, number);
  return LOOK_COPY;
}

/* One step in a sequence's first record. */
static enum look look_at_sequence(struct st_trace_buffer* b,
                                  struct st_sequence* s) {
  uint32_t number = s->first;
  struct st_record* r = st_record_at(&b->index, number);
  if (r->flags & ST_CHUNK_NEEDS_PATCHING)
    return stall(b, s);
  bool nothing = r->read == r->end && !(r->flags & ST_RECORD_BROKEN);
  if (nothing && (r->flags & ST_RECORD_INCOMPLETE))
    return stall(b, s);
  if (!r->read)
    begin_record(s, r);
  /* A last fragment that goes on elsewhere is not for scratch, unless its
   * beginning is lost as well. */
  bool orphan = r->last == 0 && (r->flags & ST_CHUNK_FIRST_CONTINUES);
  uint32_t limit = continues(r) && !orphan ? r->last : r->end;
  if (r->read < limit)
    return copy_out(b, s, number, limit);
  if (r->read < r->end)
    return LOOK_CHAIN;
  finish_record(b, s, number);
  return LOOK_AGAIN;
}

static enum look look(struct st_trace_buffer* b, struct chain* chain) {
  struct st_reader* reader = &b->reader;
  struct st_index* x = &b->index;
  if (!st_record_exists(x, reader->cursor) &&
      st_is_before(reader->cursor, x->head))
    reader->cursor = x->head;
  uint32_t left = RECORDS_AT_ONCE;
  for (; st_is_before(reader->cursor, reader->pass_end); reader->cursor++) {
    if (!left--)
      return LOOK_AGAIN;
    const struct st_record* r = st_record_at(x, reader->cursor);
    if (r->sequence == ST_NO_SEQUENCE)
      continue;
    struct st_sequence* s = st_sequence_of(x, r);
    if (s->stalled == reader->pass)
      continue;
    enum look result = look_at_sequence(b, s);
    if (result != LOOK_CHAIN)
      return result;
    uint32_t first_id = st_record_at(x, s->first)->chunk_id;
    *chain = (struct chain){s->first, s->first, first_id, s->key};
    return LOOK_CHAIN;
  }
  return LOOK_END;
}

/* --- packets of several records --- */

enum link { LINK_MORE, LINK_LAST, LINK_EMPTY, LINK_WAIT, LINK_LOST };

/* What record r is to a packet that goes on from `before`. */
static enum link link_of(const struct st_record* before,
                         const struct st_record* r, uint32_t* loss) {
  if (r->chunk_id != before->chunk_id + 1) {
    *loss = ST_LOSS_REASSEMBLY_GAP;
    return LINK_LOST;
  }
  if (r->flags & ST_CHUNK_NEEDS_PATCHING)
    return LINK_WAIT;
  if (r->end == 0) {
    /* A broken one says itself what it lost. */
    if (r->flags & ST_RECORD_BROKEN)
      return LINK_LOST;
    return r->flags & ST_RECORD_INCOMPLETE ? LINK_WAIT : LINK_EMPTY;
  }
  if (r->read || !(r->flags & ST_CHUNK_FIRST_CONTINUES)) {
    *loss = ST_LOSS_BROKEN_CHAIN;
    return LINK_LOST;
  }
  return r->last == 0 && continues(r) ? LINK_MORE : LINK_LAST;
}

/* Looks for the last fragment.  LOOK_CHAIN: it is there. */
static enum look find_end(struct st_trace_buffer* b, struct chain* chain) {
  struct st_index* x = &b->index;
  struct st_sequence* s = st_sequence_find(x, chain->key);
  uint32_t number = chain->first;
  enum link link = LINK_MORE;
  uint32_t loss = 0;
  while (link == LINK_MORE || link == LINK_EMPTY) {
    if (number == s->last) {
      link = LINK_WAIT;
      break;
    }
    const struct st_record* before = st_record_at(x, number);
    number = before->next;
    link = link_of(before, st_record_at(x, number), &loss);
  }
  if (link == LINK_LAST) {
    st_stats(b)->readaheads_succeeded++;
    chain->last = number;
    /* Now: what is lost from here on is lost behind this packet. */
    set_writer(b, s->key, take_loss(s));
    return LOOK_CHAIN;
  }
  st_stats(b)->readaheads_failed++;
  if (link == LINK_WAIT)
    return stall(b, s);
  s->loss |= loss;
  finish_record(b, s, chain->first);
  return LOOK_AGAIN;
}

/* The chain's `i`th record, if it is still there. */
static struct st_record* chain_record(struct st_trace_buffer* b,
                                      const struct chain* chain,
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

/* Appends one record's fragment, unless there is no `room`, and notes it as read:
 * who evicts the record then counts only what follows. */
static bool append_fragment(struct st_trace_buffer* b,
                            const struct chain* chain, uint32_t number,
                            bool room, size_t* size) {
  struct st_record* r = st_record_at(&b->index, number);
  struct st_sequence* s = st_sequence_of(&b->index, r);
  const uint8_t* payload = st_record_payload(b, r);
  const uint8_t* p = payload + (number == chain->first ? r->last : 0);
  bool empty = !r->end;
  uint64_t n = 0;
  const uint8_t* data = room ? st_get_fragment(p, payload + r->end, &n) : NULL;
  if (data) {
    memcpy(b->reader.whole + *size, data, n);
    *size += n;
  }
  if (number != chain->first)
    st_sequence_pass(s, r->chunk_id);
  if (data && number == chain->last)
    r->read = (uint16_t)(data + n - payload);
  if (!data || number != chain->last || r->read == r->end)
    finish_record(b, s, number);
  return data || empty;
}

/* Moves the fragment in the chain's `i`th record.  *number: the next record. */
static bool take_fragment(struct st_trace_buffer* b, const struct chain* chain,
                          uint32_t i, uint32_t* number, size_t* size) {
  size_t needed = *size + ST_MAX_RECORD + ST_READ_SLACK;
  bool room = reserve_whole(&b->reader, needed), taken = false;
  pthread_mutex_lock(&b->mutex);
  const struct st_record* r = chain_record(b, chain, *number, i);
  if (r) {
    uint32_t next = r->next;
    taken = append_fragment(b, chain, *number, room, size);
    *number = next;
  }
  pthread_mutex_unlock(&b->mutex);
  return taken;
}

/* False: part of the packet went away while it was copied.  Its other records
 * continue what nobody has, and are read as that. */
static bool reassemble(struct st_trace_buffer* b, const struct chain* chain,
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
  if (!whole || !size)
    return false;
  *out = reader->packet;
  out->data = reader->whole;
  out->size = size;
  return true;
}

/* --- without the lock --- */

static bool broken_copy(struct st_reader* reader) {
  reader->violations++;
  reader->packet.loss |= ST_LOSS_CHUNK_CORRUPTED;
  reader->cur = reader->end;
  return false;
}

/* The next packet in scratch.  Sizes were good when the chunk came in, but a
 * patch may have changed them. */
static bool next_in_scratch(struct st_reader* reader, struct st_packet* out) {
  while (reader->cur < reader->end) {
    const uint8_t* p = reader->cur;
    uint64_t size;
    p = st_get_fragment(p, reader->end, &size);
    if (!p)
      return broken_copy(reader);
    reader->cur = p + size;
    bool skipped = reader->skip_fragment;
    reader->skip_fragment = false;
    if (skipped || !size)
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
  struct chain chain;
  for (;;) {
    if (next_in_scratch(reader, out))
      return hand_out(reader, out);
    pthread_mutex_lock(&b->mutex);
    settle(b);
    enum look found = look(b, &chain);
    if (found == LOOK_CHAIN)
      found = find_end(b, &chain);
    pthread_mutex_unlock(&b->mutex);
    if (found == LOOK_END)
      return false;
    if (found == LOOK_CHAIN && reassemble(b, &chain, out))
      return hand_out(reader, out);
  }
}
