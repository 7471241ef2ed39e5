/* Tokenizer: splits a stream of messages that arrives in pieces.
 *
 * A trace is a repeated field: `0a`, length, packet, and again.  Pieces may end
 * anywhere.  A message that lies whole in a piece is given where it lies; of
 * one that doesn't, the beginning is kept, and the message put together:
 *
 *   piece 1  | 0a n packet | 0a n pac|          kept: 0a n pac
 *   piece 2  |ket | 0a n packet | 0a            kept: 0a
 *
 * Fields of other numbers are skipped, whatever their wire type.
 *
 * Recovery: the format has no frames to find again, but Perfetto's service ends
 * a packet with a marker of 16 bytes now and then.  After something that can't
 * be parsed, reading goes on behind the next marker; what lies before is
 * counted in `skipped`.  Without a marker nothing more is read.  A wrong length
 * that reaches past the end shows only there: st_tokenizer_end says that no
 * more is to come, and the search begins in what was kept.
 *
 *   st_tokenizer_init(&t, 1, 64 << 20, NULL, 0);
 *   st_tokenizer_append(&t, piece, size);
 *   while (st_tokenizer_next(&t, &token)) ...
 *
 * Life cycle: a piece must stay as it is until next() has returned false, a
 * token's bytes until the next call.  A piece is read to its end before another
 * one is appended.
 *
 * Limits: a longer message than max_size is taken for damage.  At most that,
 * and a header, is kept, and no more than has arrived.
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
  const uint8_t* cur; /* of the piece */
  const uint8_t* end;
  uint8_t* kept; /* the beginning of a field that isn't whole */
  size_t kept_pos, kept_size, kept_capacity;
  uint32_t field;
  size_t max_size;
  const uint8_t* marker;
  size_t marker_size, marker_matched;
  bool lost;  /* seeking the marker */
  bool ended; /* no more pieces */
  bool out_of_memory;
  uint64_t errors;
  uint64_t skipped; /* bytes */
};

/* The marker's bytes are the caller's. */
void st_tokenizer_init(struct st_tokenizer* t, uint32_t field, size_t max_size,
                       const void* marker, size_t marker_size);
void st_tokenizer_append(struct st_tokenizer* t, const void* data, size_t size);
void st_tokenizer_end(struct st_tokenizer* t);
bool st_tokenizer_next(struct st_tokenizer* t, struct st_token* out);

/* Bytes that have arrived and belong to no message yet. */
static inline size_t st_tokenizer_left(const struct st_tokenizer* t) {
  return t->kept_size - t->kept_pos + (size_t)(t->end - t->cur);
}

void st_tokenizer_free(struct st_tokenizer* t);
