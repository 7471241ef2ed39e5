#include "trace_buffer_internal.h"

/* What a later record contributes to a packet: no fragment (it is missing), a
 * middle fragment, the last fragment, or a fragment of another packet. */
enum link { LINK_NONE, LINK_MORE, LINK_END, LINK_OTHER };

static enum link link_of(const struct st_record* r) {
  if (st_nothing_left(r))
    return LINK_NONE;
  if (!st_is_continuation(r))
    return LINK_OTHER;
  return st_goes_on(r) ? LINK_MORE : LINK_END;
}

/* Examines the record after `before` for the packet's next fragment.  Returns
 * false when the packet is complete or can never be completed. */
static bool follow(const struct st_record* before, const struct st_record* r,
                   bool gap, struct st_chain* chain, enum link* link) {
  *link = LINK_NONE;
  if (r->flags & ST_CHUNK_NEEDS_PATCHING)
    return false;
  if (gap || r->chunk_id != before->chunk_id + 1) {
    chain->loss = ST_LOSS_REASSEMBLY_GAP;
    return false;
  }
  *link = link_of(r);
  if (*link == LINK_NONE && (r->flags & ST_RECORD_CORRUPTED))
    chain->loss = ST_LOSS_CHUNK_CORRUPTED;
  if (*link == LINK_OTHER)
    chain->loss = ST_LOSS_BROKEN_CHAIN;
  return !chain->loss && *link != LINK_END;
}

bool st_find_chain(const struct st_index* x, const struct st_sequence* s,
                   bool gap, struct st_chain* chain) {
  uint32_t number = s->first;
  const struct st_record* r = st_record_at(x, number);
  *chain = (struct st_chain){number, number, r->chunk_id, s->key, 0};
  enum link link = LINK_NONE;
  bool more = !(r->flags & ST_CHUNK_NEEDS_PATCHING);
  while (more && number != s->last) {
    const struct st_record* before = r;
    number = before->next;
    r = st_record_at(x, number);
    more = follow(before, r, gap, chain, &link);
    if (link == LINK_MORE || link == LINK_END)
      chain->last = number;
  }
  return link == LINK_END;
}

uint32_t st_fragment_end(const struct st_trace_buffer* b,
                         const struct st_record* r) {
  const uint8_t* payload = st_record_payload(b, r);
  uint64_t size;
  const uint8_t* data =
      st_get_fragment(payload + r->read, payload + r->end, &size);
  return data ? (uint32_t)(data + size - payload) : r->end;
}

void st_consume(struct st_trace_buffer* b, struct st_record* r, uint32_t end,
                enum st_consumer consumer) {
  struct st_buffer_stats* stats = st_stats(b);
  r->read = (uint16_t)end;
  if (end < r->end)
    return;
  st_uncount_unread(b, r);
  if (consumer == ST_READER) {
    stats->chunks_read++;
    stats->bytes_read += st_record_size(r);
  } else {
    stats->chunks_overwritten++;
    stats->bytes_overwritten += st_record_size(r);
  }
}

void st_consume_chain(struct st_trace_buffer* b, const struct st_chain* chain,
                      enum st_consumer consumer) {
  uint32_t number = chain->first;
  for (bool more = true; more;) {
    struct st_record* r = st_record_at(&b->index, number);
    more = number != chain->last;
    number = r->next;
    if (!st_nothing_left(r))
      st_consume(b, r, st_fragment_end(b, r), consumer);
  }
}

void st_skip_orphan(struct st_trace_buffer* b, struct st_sequence* s,
                    struct st_record* r, enum st_consumer consumer) {
  s->loss |= ST_LOSS_ORPHAN_CONTINUATION;
  st_consume(b, r, st_fragment_end(b, r), consumer);
}

void st_erase_first(struct st_trace_buffer* b, struct st_sequence* s) {
  struct st_record* r = st_record_at(&b->index, s->first);
  st_uncount_unread(b, r);
  s->last_id = r->chunk_id;
  s->last_end = r->end;
  s->flags = ST_SEQUENCE_BEGUN;
  if (r->flags & ST_RECORD_INCOMPLETE)
    s->flags |= ST_SEQUENCE_MAY_GROW;
  r->flags = ST_RECORD_PADDING;
  st_sequence_unlink(&b->index, s->first);
}

void st_erase_first_in_ring(struct st_trace_buffer* b, struct st_sequence* s) {
  const struct st_record* r = st_record_at(&b->index, s->first);
  st_record_bytes(b, r)[offsetof(struct st_record_header, flags)] |=
      ST_RECORD_PADDING;
  st_erase_first(b, s);
}
