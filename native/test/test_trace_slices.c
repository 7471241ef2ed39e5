#include "trace_slices.h"

#include <string.h>

#include "check.h"

/* A trace of three packets.  Their contents are "abc", "" and 200 times 'x'. */
static uint8_t trace[5 + 2 + 203];

static void make_trace(void) {
  static const uint8_t start[] = {0x0a, 3, 'a',  'b',  'c',
                                  0x0a, 0, 0x0a, 0xc8, 1};
  memcpy(trace, start, sizeof start);
  memset(trace + sizeof start, 'x', 200);
}

static void packed_slices_have_the_expected_bytes(void) {
  static const uint8_t expected[] = {0x12, 7, 0x0a, 3, 'a',  'b', 'c', 0x10, 1,
                                     0x12, 4, 0x0a, 0, 0x10, 1};
  uint8_t out[1000];
  size_t written;
  CHECK_EQ(st_slices_pack(trace, 7, sizeof out, out, &written), 7);
  CHECK_EQ(written, sizeof expected);
  CHECK_EQ(memcmp(out, expected, sizeof expected), 0);
}

static void packed_slices_are_joined_to_the_same_trace(void) {
  uint8_t out[1000], back[1000];
  size_t written, joined;
  CHECK_EQ(st_slices_pack(trace, sizeof trace, sizeof out, out, &written),
           sizeof trace);
  CHECK_EQ(st_slices_join(out, written, back, &joined), written);
  CHECK_EQ(joined, sizeof trace);
  CHECK_EQ(memcmp(back, trace, joined), 0);
}

static void packing_stops_at_the_limit(void) {
  uint8_t out[1000];
  size_t written;
  size_t one = 3 + ST_SLICE_OVERHEAD, two = one + ST_SLICE_OVERHEAD;
  CHECK_EQ(st_slices_pack(trace, sizeof trace, one - 1, out, &written), 0);
  CHECK_EQ(written, 0);
  CHECK_EQ(st_slices_pack(trace, sizeof trace, one, out, &written), 5);
  CHECK_EQ(st_slices_pack(trace, sizeof trace, two, out, &written), 7);
  CHECK_EQ(st_slices_pack(trace, sizeof trace, two + 216, out, &written), 7);
  CHECK_EQ(st_slices_pack(trace, sizeof trace, two + 217, out, &written),
           sizeof trace);
}

static void packets_with_a_redundant_length_fit(void) {
  static const uint8_t redundant[] = {0x0a, 0x81, 0x80, 0x80, 0, 'x'};
  uint8_t out[1 + 3 + ST_SLICE_OVERHEAD];
  size_t written;
  CHECK_EQ(
      st_slices_pack(redundant, sizeof redundant, sizeof out, out, &written),
      sizeof redundant);
  CHECK(written <= sizeof out);
}

static void packing_stops_at_bytes_that_are_no_packet(void) {
  static const uint8_t cases[][3] = {
      {0x12, 1, 'x'}, {0x0a, 2, 'x'}, {0x0a, 0xff, 0xff}};
  uint8_t out[100];
  size_t written;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    CHECK_EQ(st_slices_pack(cases[i], 3, sizeof out, out, &written), 0);
  CHECK_EQ(st_slices_pack(trace, 0, sizeof out, out, &written), 0);
}

/* Each reply begins with a plain slice of 7 bytes: 12 5 0a 1 'a' 10 1. */
static void joining_stops_at_slices_encoded_in_another_way(void) {
  static const uint8_t cases[][16] = {
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 3, 0x0a, 1, 'b'},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 5, 0x0a, 1, 'b', 0x10, 0},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 5, 0x10, 1, 0x0a, 1, 'b'},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 5, 0x0a, 1, 'b', 0x10, 2},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 5, 0x0a, 2, 'b', 0x10, 1},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 7, 0x0a, 1, 'b', 0x10, 1},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x12, 1, 1},
      {0x12, 5, 0x0a, 1, 'a', 0x10, 1, 0x1a, 5, 0x0a, 1, 'b', 0x10, 1},
  };
  static const size_t sizes[] = {12, 14, 14, 14, 14, 14, 10, 14};
  uint8_t out[16];
  size_t written;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_EQ(st_slices_join(cases[i], sizes[i], out, &written), 7);
    CHECK_EQ(written, 3);
  }
}

static void slices_of_one_packet_are_joined(void) {
  static const uint8_t reply[] = {0x12, 5,    0x0a, 1,    'a', 0x10, 0, 0x12, 3,
                                  0x0a, 1,    'b',  0x12, 2,   0x0a, 0, 0x12, 5,
                                  0x0a, 1,    'c',  0x10, 1,   0x12, 5, 0x0a, 1,
                                  'd',  0x10, 1,    0x12, 3,   0x0a, 1, 'e'};
  static const uint8_t expected[] = {0x0a, 3, 'a', 'b', 'c', 0x0a, 1, 'd'};
  uint8_t out[sizeof reply];
  size_t written;
  CHECK_EQ(st_slices_join(reply, sizeof reply, out, &written),
           sizeof reply - 5);
  CHECK_EQ(written, sizeof expected);
  CHECK_EQ(memcmp(out, expected, sizeof expected), 0);
}

static void joined_trace_is_never_longer_than_its_slices(void) {
  enum { SLICES = 200, SIZE = 7 };
  static const uint8_t part[SIZE] = {0x12, 5, 0x0a, 1, 'x', 0x10, 0};
  uint8_t reply[SLICES * SIZE], out[SLICES * SIZE];
  for (size_t i = 0; i < SLICES; i++)
    memcpy(reply + i * SIZE, part, SIZE);
  reply[sizeof reply - 1] = 1;
  size_t written;
  CHECK_EQ(st_slices_join(reply, sizeof reply, out, &written), sizeof reply);
  CHECK_EQ(written, 3 + SLICES);
  CHECK_EQ(out[1], 0xc8);
}

int main(void) {
  make_trace();
  RUN(packed_slices_have_the_expected_bytes);
  RUN(packed_slices_are_joined_to_the_same_trace);
  RUN(packing_stops_at_the_limit);
  RUN(packets_with_a_redundant_length_fit);
  RUN(packing_stops_at_bytes_that_are_no_packet);
  RUN(joining_stops_at_slices_encoded_in_another_way);
  RUN(slices_of_one_packet_are_joined);
  RUN(joined_trace_is_never_longer_than_its_slices);
  return 0;
}
