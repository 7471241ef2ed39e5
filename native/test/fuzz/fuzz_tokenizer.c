/* Fuzzes the tokenizer with any bytes in pieces of any size: tokens must have
 * the right positions, all bytes must be accounted for, and pieces must give
 * the same tokens as the whole input. */
#define CHECK_ABORTS
#include <string.h>

#include "check.h"
#include "tokenizer.h"

static const uint8_t kMarker[2] = {0x08, 0x01};

struct summary {
  uint64_t messages, bytes, errors, skipped;
};

static void drain(struct st_tokenizer* t, struct summary* s) {
  struct st_token token;
  while (st_tokenizer_next(t, &token)) {
    s->messages++;
    s->bytes += token.size;
    for (size_t i = 0; i < token.size; i++)
      s->bytes += token.data[i];
  }
}

static struct summary read_in_pieces(const uint8_t* data, size_t size,
                                     size_t piece, size_t marker_size) {
  struct summary s = {0};
  struct st_tokenizer t;
  st_tokenizer_init(&t, 1, 256, kMarker, marker_size);
  for (size_t at = 0; at < size; at += piece) {
    size_t n = size - at < piece ? size - at : piece;
    uint8_t* copy = malloc(n);
    memcpy(copy, data + at, n);
    st_tokenizer_append(&t, copy, n);
    drain(&t, &s);
    free(copy);
    t.cur = t.end = NULL;
  }
  st_tokenizer_end(&t);
  drain(&t, &s);
  s.errors = t.errors;
  s.skipped = t.skipped;
  CHECK(t.skipped <= size);
  st_tokenizer_free(&t);
  return s;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2)
    return 0;
  size_t piece = 1 + data[0] % 64;
  size_t marker_size = data[1] % 2 ? sizeof kMarker : 0;
  data += 2;
  size -= 2;
  struct summary whole =
      read_in_pieces(data, size, size ? size : 1, marker_size);
  struct summary pieces = read_in_pieces(data, size, piece, marker_size);
  CHECK_EQ(whole.messages, pieces.messages);
  CHECK_EQ(whole.bytes, pieces.bytes);
  CHECK_EQ(whole.errors, pieces.errors);
  if (marker_size)
    CHECK_EQ(whole.skipped, pieces.skipped);
  return 0;
}
