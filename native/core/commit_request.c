#include "commit_request.h"

#include <string.h>

#include "wire.h"

enum {
  COMMIT_MOVE = 1,
  COMMIT_PATCH = 2,
  COMMIT_FLUSH_ID = 3,

  MOVE_PAGE = 1,
  MOVE_CHUNK = 2,
  MOVE_BUFFER = 3,
  MOVE_DATA = 4,
  MOVE_INCOMPLETE = 5,

  PATCH_BUFFER = 1,

  /* The largest size of an encoded chunks_to_move entry, without its chunk. */
  MAX_MOVE = 32,
  MAX_PATCH_HEAD = 2 * ST_MAX_TAG + ST_MAX_VARINT + 6,
  MAX_FLUSH_ID = 1 + ST_MAX_VARINT,
};

static_assert((int)ST_COMMIT_MAX_PATCH_ENTRY + (int)MAX_PATCH_HEAD <=
                  (int)ST_COMMIT_MAX_REQUEST,
              "an entry must fit");

static bool fits(const struct st_commit_request* r, size_t size) {
  return r->limit - r->size >= size;
}

static uint8_t* put_data(uint8_t* p, const uint8_t* data, size_t size,
                         uint16_t buffer, bool incomplete) {
  uint8_t* size_field = st_put_tag(p, COMMIT_MOVE, ST_WIRE_DELIMITED);
  p = size_field + ST_SIZE_FIELD;
  p = st_put_u64_field(p, MOVE_BUFFER, buffer);
  p = st_put_bytes_field(p, MOVE_DATA, data, size);
  if (incomplete)
    p = st_put_u64_field(p, MOVE_INCOMPLETE, 1);
  st_put_size_field(size_field, (uint32_t)(p - size_field) - ST_SIZE_FIELD);
  return p;
}

static uint8_t* put_place(uint8_t* p, const struct st_pending_move* move,
                          uint16_t buffer) {
  uint8_t body[MAX_MOVE];
  uint8_t* end = st_put_u64_field(body, MOVE_PAGE, move->chunk.page);
  end = st_put_u64_field(end, MOVE_CHUNK, move->chunk.index);
  end = st_put_u64_field(end, MOVE_BUFFER, buffer);
  return st_put_bytes_field(p, COMMIT_MOVE, body, (size_t)(end - body));
}

static void put_move(struct st_commit_pending* pending,
                     struct st_commit_request* r, struct st_pending_move* move,
                     uint16_t buffer) {
  uint8_t* p = r->bytes + r->size;
  if (move->being_written)
    st_chunk_release_as_complete(pending->shm, &move->chunk);
  move->being_written = false;
  move->in_request = true;
  if (!pending->emulated)
    p = put_place(p, move, buffer);
  else if (buffer)
    p = put_data(p, move->chunk.begin, move->chunk.size, buffer, false);
  r->size = (size_t)(p - r->bytes);
}

/* Encodes the pending moves that fit into the request.  Returns false if some
 * moves did not fit. */
static bool put_moves(struct st_commit_pending* pending,
                      struct st_commit_request* r) {
  size_t count;
  struct st_pending_move* moves = st_commit_pending_moves(pending, &count);
  for (size_t i = 0; i < count; i++) {
    uint16_t buffer;
    size_t data = pending->emulated ? moves[i].chunk.size : 0;
    if (!st_commit_pending_resolve(pending, moves[i].target_buffer, &buffer))
      continue;
    if (!fits(r, MAX_MOVE + data))
      return false;
    put_move(pending, r, &moves[i], buffer);
  }
  return true;
}

/* Removes the moves that were sent, and the moves that have no buffer.  Under
 * emulation the chunks of these moves become free. */
static void take_out_moves(struct st_commit_pending* pending) {
  size_t count, kept = 0;
  struct st_pending_move* moves = st_commit_pending_moves(pending, &count);
  for (size_t i = 0; i < count; i++) {
    if (!moves[i].in_request)
      moves[kept++] = moves[i];
    else if (pending->emulated)
      st_chunk_release_complete_as_free(pending->shm, &moves[i].chunk);
  }
  pending->moves.size = kept * sizeof *moves;
}

void st_commit_request_put_incomplete(struct st_commit_request* r,
                                      const uint8_t* data, size_t size,
                                      uint16_t buffer) {
  uint8_t* p = put_data(r->bytes + r->size, data, size, buffer, true);
  r->size = (size_t)(p - r->bytes);
}

static uint8_t* put_patch_entry(uint8_t* p, uint16_t buffer,
                                const uint8_t* rest, size_t size) {
  uint8_t* size_field = st_put_tag(p, COMMIT_PATCH, ST_WIRE_DELIMITED);
  p = size_field + ST_SIZE_FIELD;
  p = st_put_u64_field(p, PATCH_BUFFER, buffer);
  memcpy(p, rest, size);
  p += size;
  st_put_size_field(size_field, (uint32_t)(p - size_field) - ST_SIZE_FIELD);
  return p;
}

/* Encodes the pending patches that fit into the request.  Returns false if some
 * patches did not fit. */
static bool put_patches(struct st_commit_pending* pending,
                        struct st_commit_request* r) {
  struct st_pending_patches head;
  for (size_t at = 0; at < pending->patches.size;
       at += sizeof head + head.size) {
    uint8_t* entry = pending->patches.data + at;
    uint16_t buffer;
    memcpy(&head, entry, sizeof head);
    if (!st_commit_pending_resolve(pending, head.target_buffer, &buffer))
      continue;
    if (!fits(r, MAX_PATCH_HEAD + head.size))
      return false;
    head.in_request = true;
    memcpy(entry, &head, sizeof head);
    uint8_t* p = r->bytes + r->size;
    if (buffer)
      p = put_patch_entry(p, buffer, entry + sizeof head, head.size);
    r->size = (size_t)(p - r->bytes);
  }
  return true;
}

static void take_out_patches(struct st_commit_pending* pending) {
  struct st_pending_patches head;
  size_t kept = 0, at = 0;
  while (at < pending->patches.size) {
    memcpy(&head, pending->patches.data + at, sizeof head);
    size_t whole = sizeof head + head.size;
    if (!head.in_request) {
      memmove(pending->patches.data + kept, pending->patches.data + at, whole);
      kept += whole;
    }
    at += whole;
  }
  pending->patches.size = kept;
}

static void keep_patches(struct st_commit_pending* pending) {
  struct st_pending_patches head;
  for (size_t at = 0; at < pending->patches.size;
       at += sizeof head + head.size) {
    memcpy(&head, pending->patches.data + at, sizeof head);
    head.in_request = false;
    memcpy(pending->patches.data + at, &head, sizeof head);
  }
}

void st_commit_request_build(struct st_commit_pending* pending,
                             struct st_commit_request* r) {
  r->limit -= MAX_FLUSH_ID;
  r->is_last = put_moves(pending, r) && put_patches(pending, r);
  r->limit += MAX_FLUSH_ID;
  if (!r->is_last || !pending->flush_request_id)
    return;
  uint8_t* p = st_put_u64_field(r->bytes + r->size, COMMIT_FLUSH_ID,
                                pending->flush_request_id);
  r->size = (size_t)(p - r->bytes);
}

void st_commit_request_sent(struct st_commit_pending* pending,
                            const struct st_commit_request* r) {
  take_out_moves(pending);
  take_out_patches(pending);
  if (r->is_last)
    pending->flush_request_id = 0;
}

void st_commit_request_kept(struct st_commit_pending* pending) {
  size_t count;
  struct st_pending_move* moves = st_commit_pending_moves(pending, &count);
  for (size_t i = 0; i < count; i++)
    moves[i].in_request = false;
  keep_patches(pending);
}
