/* Tests of tokenizers: messages from pieces of any size, and recovery after
 * malformed bytes. */
#include "tokenizer.h"

#include <string.h>

#include "check.h"
#include "random.h"
#include "wire.h"

static const uint8_t kMarker[4] = {0x82, 0x47, 0x82, 0x48};
static uint8_t stream[1 << 16];
static size_t stream_size;
static struct st_tokenizer t;

static void start(size_t marker_size) {
  st_tokenizer_init(&t, 1, 1000, kMarker, marker_size);
  stream_size = 0;
}

static void put(uint32_t field, const void* data, size_t size) {
  uint8_t* p = stream + stream_size;
  stream_size = (size_t)(st_put_bytes_field(p, field, data, size) - stream);
}

static void put_raw(const void* data, size_t size) {
  memcpy(stream + stream_size, data, size);
  stream_size += size;
}

/* Counts the messages of the stream, and checks their sizes: each message
 * contains its own size. */
struct seen {
  size_t count;
  size_t sizes[64];
};

static void read_all(struct seen* seen) {
  struct st_token token;
  while (st_tokenizer_next(&t, &token)) {
    for (size_t i = 0; i < token.size; i++)
      CHECK_EQ(token.data[i], (uint8_t)token.size);
    CHECK(seen->count < 64);
    seen->sizes[seen->count++] = token.size;
  }
}

/* Passes each piece in a heap block of its own, so that ASan detects reads
 * after it was freed. */
static void feed(struct seen* seen, const uint8_t* data, size_t size) {
  uint8_t* piece = malloc(size ? size : 1);
  memcpy(piece, data, size);
  st_tokenizer_append(&t, piece, size);
  read_all(seen);
  memset(piece, 0xEE, size);
  free(piece);
  t.cur = t.end = NULL;
}

static void put_sized(uint8_t size) {
  uint8_t payload[256];
  memset(payload, size, sizeof payload);
  put(1, payload, size);
}

static void complete_messages_are_returned_in_place(void) {
  start(0);
  put_sized(3);
  put_sized(0);
  put_sized(200);
  struct st_token token;
  st_tokenizer_append(&t, stream, stream_size);
  CHECK(st_tokenizer_next(&t, &token));
  CHECK(token.data == stream + 2 && token.lies_in_piece);
  CHECK(st_tokenizer_next(&t, &token));
  CHECK_EQ(token.size, 0);
  CHECK(st_tokenizer_next(&t, &token));
  CHECK_EQ(token.size, 200);
  CHECK(!st_tokenizer_next(&t, &token));
  CHECK_EQ(st_tokenizer_left(&t), 0);
  st_tokenizer_free(&t);
}

static void messages_are_assembled_from_pieces_of_any_size(void) {
  for (size_t piece = 1; piece < 300; piece++) {
    struct seen seen = {0};
    start(0);
    static const uint8_t sizes[] = {5, 0, 127, 128, 255, 1};
    for (size_t i = 0; i < sizeof sizes; i++)
      put_sized(sizes[i]);
    for (size_t at = 0; at < stream_size; at += piece) {
      size_t left = stream_size - at;
      feed(&seen, stream + at, left < piece ? left : piece);
    }
    CHECK_EQ(seen.count, sizeof sizes);
    for (size_t i = 0; i < sizeof sizes; i++)
      CHECK_EQ(seen.sizes[i], sizes[i]);
    CHECK_EQ(st_tokenizer_left(&t), 0);
    CHECK_EQ(t.errors, 0);
    st_tokenizer_free(&t);
  }
}

static void other_fields_are_skipped(void) {
  for (size_t piece = 1; piece < 40; piece += 38) {
    struct seen seen = {0};
    start(0);
    put(2, "other", 5);
    put_raw(
        "\x08\xFF\xFF\x01\x19"
        "12345678\x1D"
        "1234",
        18);
    put_sized(4);
    put(7, "", 0);
    put_sized(2);
    for (size_t at = 0; at < stream_size; at += piece)
      feed(&seen, stream + at,
           stream_size - at < piece ? stream_size - at : piece);
    CHECK_EQ(seen.count, 2);
    CHECK_EQ(t.errors, 0);
    st_tokenizer_free(&t);
  }
}

static void broken(const char* bytes, size_t size) {
  struct seen seen = {0};
  start(0);
  put_sized(4);
  put_raw(bytes, size);
  put_sized(4);
  feed(&seen, stream, stream_size);
  CHECK_EQ(seen.count, 1);
  CHECK_EQ(t.errors, 1);
  CHECK(st_tokenizer_left(&t) > 0 || t.lost);
  /* The tokenizer returns no more messages from a broken stream. */
  feed(&seen, stream, stream_size);
  CHECK_EQ(seen.count, 1);
  st_tokenizer_free(&t);
}

static void reading_stops_at_malformed_bytes_without_a_marker(void) {
  broken("\x00\x01", 2); /* The stream has a field with number 0. */
  broken("\x0B\x01", 2); /* The stream has a group (wire type 3). */
  /* The stream has a field of the undefined wire type 7. */
  broken("\x0F\x01", 2);
  broken("\x0A\xE9\x07", 3); /* The stream has a length above max_size. */
  broken("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
  broken("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12);
}

/* Makes a stream of one message, malformed bytes, a message with a marker, and
 * one more message. */
static void put_damaged(const char* damage, size_t size) {
  start(sizeof kMarker);
  put_sized(4);
  put_raw(damage, size);
  put_raw(kMarker, sizeof kMarker);
  put_sized(2);
  put_sized(3);
}

static void reading_continues_after_the_marker(void) {
  for (size_t piece = 1; piece < 40; piece++) {
    struct seen seen = {0};
    put_damaged(
        "\x0F\x82\x47\x82\x47"
        "xyz",
        8);
    for (size_t at = 0; at < stream_size; at += piece)
      feed(&seen, stream + at,
           stream_size - at < piece ? stream_size - at : piece);
    CHECK_EQ(seen.count, 3);
    CHECK_EQ(seen.sizes[1], 2);
    CHECK_EQ(seen.sizes[2], 3);
    CHECK_EQ(t.errors, 1);
    CHECK_EQ(t.skipped, 12);
    st_tokenizer_free(&t);
  }
}

static void length_beyond_the_end_is_detected_at_the_end(void) {
  for (size_t piece = 1; piece < 40; piece += 38) {
    struct seen seen = {0};
    put_damaged("\x0A\x80\x04", 3);
    for (size_t at = 0; at < stream_size; at += piece)
      feed(&seen, stream + at,
           stream_size - at < piece ? stream_size - at : piece);
    CHECK_EQ(seen.count, 1);
    st_tokenizer_end(&t);
    read_all(&seen);
    CHECK_EQ(seen.count, 3);
    CHECK_EQ(t.errors, 1);
    CHECK_EQ(st_tokenizer_left(&t), 0);
    st_tokenizer_free(&t);
  }
}

static void incomplete_message_at_the_end_is_an_error(void) {
  struct seen seen = {0};
  start(0);
  put_sized(9);
  feed(&seen, stream, stream_size - 1);
  st_tokenizer_end(&t);
  read_all(&seen);
  CHECK_EQ(seen.count, 0);
  CHECK_EQ(t.errors, 1);
  CHECK_EQ(st_tokenizer_left(&t), stream_size - 1);
  st_tokenizer_free(&t);
}

static void random_pieces_give_the_same_messages(void) {
  uint64_t state = 7;
  for (int round = 0; round < 300; round++) {
    struct seen seen = {0};
    start(0);
    size_t count = random_below(&state, 60);
    for (size_t i = 0; i < count; i++)
      put_sized((uint8_t)random_below(&state, 256));
    for (size_t at = 0; at < stream_size;) {
      size_t left = stream_size - at;
      size_t size = 1 + random_below(&state, 600);
      size = size < left ? size : left;
      feed(&seen, stream + at, size);
      at += size;
    }
    CHECK_EQ(seen.count, count);
    st_tokenizer_free(&t);
  }
}

int main(void) {
  RUN(complete_messages_are_returned_in_place);
  RUN(messages_are_assembled_from_pieces_of_any_size);
  RUN(other_fields_are_skipped);
  RUN(reading_stops_at_malformed_bytes_without_a_marker);
  RUN(reading_continues_after_the_marker);
  RUN(length_beyond_the_end_is_detected_at_the_end);
  RUN(incomplete_message_at_the_end_is_an_error);
  RUN(random_pieces_give_the_same_messages);
  return 0;
}
