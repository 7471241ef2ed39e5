/* Tokenizer: splits a stream of messages that arrives in pieces.
 *
 * A trace is a repeated field: `0a`, length, packet, and again.  Pieces may end
 * at any byte.  A message that is complete in a piece is returned in place.
 * Otherwise its beginning is kept, and the message is assembled:
 *
 *   piece 1  | 0a n packet | 0a n pac|          kept: 0a n pac
 *   piece 2  |ket | 0a n packet | 0a            kept: 0a
 *
 * Fields of other numbers are skipped, whatever their wire type.
 *
 * Recovery: the format has no frame marks, but Perfetto's service ends some
 * packets with a marker of 16 bytes.  After a malformed field, reading
 * continues after the next marker; the bytes before it are counted in
 * `skipped`. Without a marker no more is read.  A wrong length that exceeds the
 * stream is detected only at the end: st_tokenizer_end marks the end of the
 * stream, and the search for a marker starts in the kept bytes.
 *
 *   st_tokenizer_init(&t, 1, 64 << 20, NULL, 0);
 *   st_tokenizer_append(&t, piece, size);
 *   while (st_tokenizer_next(&t, &token)) ...
 *
 * Life cycle: a piece must stay unchanged until next() has returned false; a
 * token's bytes are valid until the next call.  All of a piece is read before
 * another piece is appended.
 *
 * Limits: a message longer than max_size counts as malformed.  At most max_size
 * bytes and a header are kept, and never more than has arrived.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_token {
  const uint8_t* data;
  size_t size;
  bool lies_in_piece;
};

struct st_tokenizer {
  /* The unread bytes of the current piece: from `cur` to `end`. */
  const uint8_t* cur;
  const uint8_t* end;
  /* The kept bytes: the start of a field that is not complete yet. */
  uint8_t* kept;
  size_t kept_pos, kept_size, kept_capacity;
  uint32_t field;
  size_t max_size;
  const uint8_t* marker;
  size_t marker_size, marker_matched;
  /* Whether the tokenizer is searching for the marker, after a malformed
   * field. */
  bool lost;
  /* Whether the end of the stream was announced, so that no piece follows. */
  bool ended;
  bool out_of_memory;
  uint64_t errors;
  uint64_t skipped; /* The number of skipped bytes of the stream. */
};

/* Initialises the tokenizer.  It borrows the bytes of the marker from the
 * caller. */
void st_tokenizer_init(struct st_tokenizer* t, uint32_t field, size_t max_size,
                       const void* marker, size_t marker_size);
void st_tokenizer_append(struct st_tokenizer* t, const void* data, size_t size);
void st_tokenizer_end(struct st_tokenizer* t);
bool st_tokenizer_next(struct st_tokenizer* t, struct st_token* out);

/* Returns the number of arrived bytes that belong to no complete message
 * yet. */
static inline size_t st_tokenizer_left(const struct st_tokenizer* t) {
  return t->kept_size - t->kept_pos + (size_t)(t->end - t->cur);
}

void st_tokenizer_free(struct st_tokenizer* t);
