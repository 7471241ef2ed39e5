#include "decoder.h"

#include <stdlib.h>

#include "check.h"

static struct st_decoder d;
static struct st_field f;

static void decode(const void* data, size_t size) {
  st_decoder_init(&d, data, size);
}

static void fields_of_every_wire_type_are_decoded(void) {
  uint8_t m[64], *p = m;
  p = st_put_u64_field(p, 1, 300);
  p = st_put_fixed64_field(p, 2, 0x1122334455667788);
  p = st_put_bytes_field(p, 3, "abc", 3);
  p = st_put_tag(p, 4, ST_WIRE_FIXED32);
  memcpy(p, "\x01\x02\x03\x04", 4);
  p = st_put_bytes_field(p + 4, 5000, "", 0);
  decode(m, (size_t)(p - m));
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 1);
  CHECK_EQ(f.wire_type, ST_WIRE_VARINT);
  CHECK_EQ(f.value, 300);
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 2);
  CHECK_EQ(f.value, 0x1122334455667788);
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 3);
  CHECK_EQ(f.size, 3);
  CHECK(!memcmp(f.data, "abc", 3));
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 4);
  CHECK_EQ(f.value, 0x04030201);
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 5000);
  CHECK_EQ(f.size, 0);
  CHECK(!st_decoder_next(&d, &f));
  CHECK_EQ(st_decoder_left(&d), 0);
}

/* Decodes a copy of the input in a heap block of its exact size, so that ASan
 * detects reads after its end. */
static void expect_malformed(const void* data, size_t size) {
  uint8_t* copy = malloc(size);
  memcpy(copy, data, size);
  decode(copy, size);
  while (st_decoder_next(&d, &f)) {
  }
  CHECK(st_decoder_left(&d) > 0);
  size_t left = st_decoder_left(&d);
  /* A second call fails, too, because the decoder keeps its position. */
  CHECK(!st_decoder_next(&d, &f));
  CHECK_EQ(st_decoder_left(&d), left);
  free(copy);
}

static void decoding_stops_at_malformed_fields(void) {
  expect_malformed("\x80", 1);     /* The tag is incomplete. */
  expect_malformed("\x08", 1);     /* The tag has no value. */
  expect_malformed("\x08\xFF", 2); /* The varint is incomplete. */
  /* The delimited field has no length. */
  expect_malformed("\x0A", 1);
  expect_malformed("\x0A\x05xxxx", 6); /* The length exceeds the input. */
  expect_malformed("\x09xxxxxxx", 8);  /* The fixed64 is incomplete. */
  expect_malformed("\x0Dxxx", 4);      /* The fixed32 is incomplete. */
  expect_malformed("\x00\x01", 2);     /* Field number 0 is invalid. */
  expect_malformed("\x0B\x01", 2);     /* Wire type 3 is a group. */
  expect_malformed("\x0C\x01", 2);     /* Wire type 4 is a group's end. */
  expect_malformed("\x0E\x01", 2);     /* Wire type 6 is undefined. */
  expect_malformed("\x0F\x01", 2);     /* Wire type 7 is undefined. */
  expect_malformed("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12);
  expect_malformed("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
  /* A valid field precedes the malformed one. */
  expect_malformed("\x08\x01\x0A\x05", 4);
}

static void decoding_of_any_prefix_stays_inside_it(void) {
  uint8_t m[32], *p = m;
  p = st_put_u64_field(p, 1, UINT64_MAX);
  uint8_t* first = p;
  p = st_put_bytes_field(p, 2, "abcdef", 6);
  for (size_t n = 1; n < (size_t)(p - m); n++)
    if (m + n != first)
      expect_malformed(m, n);
}

static void big_field_numbers_are_skipped(void) {
  uint8_t m[64], *p = m;
  p = st_put_u64_field(p, (1u << 24) - 1, 1);
  p = st_put_u64_field(p, 1u << 24, 2);
  p = st_put_bytes_field(p, (1u << 29) - 1, "xyz", 3);
  p = st_put_u64_field(p, 7, 3);
  p = st_put_u64_field(p, 1u << 24, 4);
  decode(m, (size_t)(p - m));
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, (1u << 24) - 1);
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 7);
  CHECK(!st_decoder_next(&d, &f));
  CHECK_EQ(st_decoder_left(&d), 0);
}

static void very_large_fields_are_skipped(void) {
  size_t size = (size_t)ST_MAX_MESSAGE_SIZE + 1;
  uint8_t* m = malloc(size + 16);
  uint8_t* p = st_put_varint(st_put_tag(m, 1, ST_WIRE_DELIMITED), size);
  p = st_put_u64_field(p + size, 2, 5);
  decode(m, (size_t)(p - m));
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 2);
  CHECK(!st_decoder_next(&d, &f));
  CHECK_EQ(st_decoder_left(&d), 0);
  free(m);
}

/* Checks varints of each length, with redundant bytes or without, each followed
 * by any number of bytes. */
static void varints_of_every_length_are_decoded(void) {
  for (unsigned size = 1; size <= ST_MAX_VARINT; size++) {
    for (unsigned room = 0; room < 10; room++) {
      uint8_t* m = malloc(1 + size + room);
      uint64_t expected = 0;
      memset(m, 0xFF, 1 + size + room);
      m[0] = 0x08;
      for (unsigned i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(0x11 * (i + 1)) & 0x7F;
        m[1 + i] = i + 1 < size ? byte | 0x80 : byte;
        expected |= (uint64_t)byte << (7 * i);
      }
      decode(m, 1 + size + room);
      CHECK(st_decoder_next(&d, &f));
      CHECK_EQ(f.value, expected);
      CHECK_EQ(st_decoder_left(&d), room);
      free(m);
    }
  }
}

static void ids_of_every_length_are_encoded_as_varints(void) {
  for (unsigned bits = 0; bits < 64; bits++) {
    const uint64_t ids[] = {1ull << bits, (2ull << bits) - 1,
                            0x123456789ABCDEF5ull >> bits};
    for (size_t i = 0; i < 3; i++) {
      uint8_t id[ST_MAX_VARINT], varint[ST_MAX_VARINT];
      size_t size = (size_t)(st_put_id(id, ids[i]) - id);
      CHECK_EQ(size, (size_t)(st_put_varint(varint, ids[i]) - varint));
      CHECK(!memcmp(id, varint, size));
    }
  }
}

static void texts_of_every_length_are_copied(void) {
  for (size_t size = 0; size < 300; size++) {
    /* The sanitizers find accesses outside of these allocations. */
    char* text = malloc(size + 1);
    uint8_t* copy = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
      text[i] = (char)(i * 7 + size);
    text[size] = 1;
    copy[size] = 2;
    CHECK(st_put_text(copy, text, size) == copy + size);
    CHECK(!memcmp(copy, text, size));
    CHECK_EQ(copy[size], 2);
    free(text);
    free(copy);
  }
}

static void empty_input_has_no_fields(void) {
  decode(NULL, 0);
  CHECK(!st_decoder_next(&d, &f));
  CHECK_EQ(st_decoder_left(&d), 0);
}

int main(void) {
  RUN(fields_of_every_wire_type_are_decoded);
  RUN(decoding_stops_at_malformed_fields);
  RUN(decoding_of_any_prefix_stays_inside_it);
  RUN(big_field_numbers_are_skipped);
  RUN(very_large_fields_are_skipped);
  RUN(varints_of_every_length_are_decoded);
  RUN(ids_of_every_length_are_encoded_as_varints);
  RUN(texts_of_every_length_are_copied);
  RUN(empty_input_has_no_fields);
  return 0;
}
