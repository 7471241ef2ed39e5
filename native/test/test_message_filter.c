#include "message_filter.h"

#include <string.h>

#include "check.h"
#include "filter_code.h"

static struct st_filter_bytecode bytecode;
static struct st_message_filter filter;

static void use(struct code code) {
  CHECK(!st_filter_bytecode_load(&bytecode, code.data, code.size, NULL, 0));
  filter = (struct st_message_filter){.bytecode = &bytecode};
}

#define USE(...) use(CODE(__VA_ARGS__))

static void drop(void) {
  st_filter_bytecode_free(&bytecode);
}

static uint8_t out[8192];
static size_t out_size;

/* Copies the input to the end of a heap block, so that ASan detects reads after
 * its end. */
static enum st_filter_result run(const void* data, size_t size) {
  uint8_t* copy = malloc(size + !size);
  CHECK(copy);
  memcpy(copy, data, size);
  enum st_filter_result result =
      st_message_filter_run(&filter, copy, size, out, &out_size);
  free(copy);
  return result;
}

static void expect(const void* data, size_t size, const void* wanted,
                   size_t wanted_size) {
  CHECK_EQ(run(data, size), ST_FILTER_DONE);
  CHECK_EQ(out_size, wanted_size);
  CHECK(!memcmp(out, wanted, wanted_size));
}

/* Both arguments of this macro are string literals. */
#define EXPECT(data, wanted) \
  expect(data, sizeof(data) - 1, wanted, sizeof(wanted) - 1)
#define MALFORMED(data) expect_malformed(data, sizeof(data) - 1)

static void expect_malformed(const void* data, size_t size) {
  out_size = 1;
  CHECK_EQ(run(data, size), ST_FILTER_MALFORMED);
  CHECK_EQ(out_size, 0);
}

static void scalar_fields_are_filtered_by_their_rules(void) {
  USE(RANGE(1, 3), END);
  EXPECT(
      "\x08\x07\x11"
      "abcdefgh"
      "\x1d"
      "abcd",
      "\x08\x07\x11"
      "abcdefgh"
      "\x1d"
      "abcd");
  EXPECT(
      "\x20\x07\x29"
      "abcdefgh"
      "\x35"
      "abcd"
      "\x3a\x02hi\x08\x01",
      "\x08\x01");
  EXPECT("", "");
  drop();
}

static void numbers_are_reencoded_with_the_fewest_bytes(void) {
  USE(SIMPLE(1), NESTED(2, 0), END);
  EXPECT("\x88\x80\x00\x87\x80\x00", "\x08\x07");
  EXPECT("\x0a\x82\x80\x80\x00hi", "\x0a\x02hi");
  EXPECT("\x12\x82\x80\x00\x08\x01", "\x12\x02\x08\x01");
  EXPECT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
         "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  drop();
}

static void nested_messages_are_filtered_in_turn(void) {
  USE(NESTED(2, 1), SIMPLE(3), END, SIMPLE(1), NESTED(4, 1), END);
  EXPECT("\x12\x04\x08\x07\x10\x01", "\x12\x02\x08\x07");
  EXPECT("\x12\x02\x10\x01\x18\x05", "\x12\x00\x18\x05");
  EXPECT("\x12\x06\x22\x04\x08\x07\x10\x01", "\x12\x04\x22\x02\x08\x07");
  /* Several nested messages end at the same byte. */
  EXPECT("\x12\x06\x22\x04\x22\x02\x10\x01\x18\x01",
         "\x12\x04\x22\x02\x22\x00\x18\x01");
  EXPECT("\x12\x00\x18\x01", "\x12\x00\x18\x01");
  /* The input has a number in place of a message. */
  EXPECT(
      "\x10\x01\x15"
      "abcd"
      "\x18\x01",
      "\x18\x01");
  drop();
}

static void length_keeps_its_width(void) {
  USE(NESTED(2, 0), SIMPLE(1), END);
  uint8_t in[3 + 200] = {0x12, 0xC8, 0x01, 0x08, 0x07, 0x1A, 0xC3, 0x01};
  expect(in, sizeof in, "\x12\x82\x00\x08\x07", 5);
  drop();
}

static void opaque_message_is_copied(void) {
  USE(SIMPLE(2), END);
  EXPECT("\x12\x06\x22\x04garb", "\x12\x06\x22\x04garb");
  drop();
}

static void malformed_messages_give_no_output(void) {
  USE(SIMPLE(1), NESTED(2, 0), STRING(3), END);
  MALFORMED("\x08");
  MALFORMED("\x08\x80");
  MALFORMED("\x80");
  MALFORMED("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00");
  MALFORMED("\x0a\x03hi");
  MALFORMED("\x0a");
  MALFORMED(
      "\x0d"
      "abc");
  MALFORMED(
      "\x09"
      "abcdefg");
  MALFORMED("\x0b");
  MALFORMED("\x0c");
  MALFORMED("\x0e\x00");
  MALFORMED("\x0f\x00");
  MALFORMED("\x00\x01");
  MALFORMED("\x02\x01x");
  MALFORMED("\x88\x80\x80\x80\x10\x01"); /* The tag has more than 32 bits. */
  MALFORMED("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  /* The input has malformed fields inside a nested message and in denied
   * fields. */
  MALFORMED("\x12\x03\x12\x02\x08\x08\x01");
  MALFORMED("\x12\x01\x08\x01");
  MALFORMED("\x12\x02\x08\x80\x01");
  MALFORMED("\x22\x05hi");
  MALFORMED("\x20");
  /* After an error the filter still works. */
  EXPECT("\x08\x01", "\x08\x01");
  drop();
}

static void nesting_depth_is_bounded(void) {
  USE(NESTED(1, 0), SIMPLE(2), END);
  uint8_t in[8192];
  size_t at = sizeof in;
  size_t size = 0;
  for (int depth = 1; depth < ST_FILTER_MAX_DEPTH; depth++) {
    uint8_t header[8];
    size_t n =
        (size_t)(st_put_varint(st_put_varint(header, 0x0A), size) - header);
    at -= n;
    memcpy(in + at, header, n);
    size = sizeof in - at;
  }
  expect(in + at, size, in + at, size);
  /* The innermost message is empty, so the filter does not enter it.  That is
   * why one more enclosing message is accepted.  A second one is refused. */
  for (int more = 0; more < 2; more++) {
    CHECK_EQ(run(in + at, size), ST_FILTER_DONE);
    in[at - 1] = (uint8_t)(size >> 7);
    in[at - 2] = (uint8_t)(size | 0x80);
    in[at - 3] = 0x0A;
    at -= 3;
    size += 3;
  }
  CHECK_EQ(run(in + at, size), ST_FILTER_MALFORMED);
  drop();
}

static uint32_t seen_type;
static int calls;

static bool stars(void* context, uint8_t* data, size_t size, uint32_t type) {
  CHECK(context == &calls);
  calls++;
  seen_type = type;
  if (data[0] == '!')
    return false;
  memset(data, '*', size);
  return true;
}

static void strings_are_passed_to_the_string_filter(void) {
  USE(STRING(1), TYPED(2, 9), SIMPLE(3), NESTED(4, 0), END);
  EXPECT("\x0a\x02hi", "\x0a\x02hi");
  filter.string_filter = stars;
  filter.context = &calls;
  EXPECT("\x0a\x02hi\x1a\x02hi", "\x0a\x02**\x1a\x02hi");
  CHECK_EQ(seen_type, 0);
  EXPECT("\x22\x04\x12\x02hi\x0a\x00", "\x22\x04\x12\x02**\x0a\x00");
  CHECK_EQ(seen_type, 9);
  CHECK_EQ(calls, 2);
  /* The input has a number in place of a string. */
  EXPECT("\x08\x01", "");
  CHECK_EQ(run("\x0a\x02!!", 4), ST_FILTER_STOPPED);
  CHECK_EQ(out_size, 0);
  drop();
}

static void root_can_be_a_nested_message(void) {
  USE(NESTED(1, 1), SIMPLE(2), END, NESTED(5, 2), END, SIMPLE(7), END);
  CHECK(st_message_filter_set_root(&filter, WORDS(1, 5), 2));
  EXPECT("\x38\x01\x10\x01", "\x38\x01");
  CHECK(!st_message_filter_set_root(&filter, WORDS(2), 1));
  CHECK(!st_message_filter_set_root(&filter, WORDS(1, 7), 2));
  CHECK(!st_message_filter_set_root(&filter, WORDS(9), 1));
  EXPECT("\x38\x01\x10\x01", "\x38\x01"); /* The root message is unchanged. */
  CHECK(st_message_filter_set_root(&filter, NULL, 0));
  EXPECT("\x38\x01\x10\x01", "\x10\x01");
  drop();
}

static void each_packet_of_a_trace_is_filtered(void) {
  USE(NESTED(1, 1), END, SIMPLE(2), END);
  CHECK(st_message_filter_set_root(&filter, WORDS(1), 1));
  static const char in[] =
      "\x0a\x04\x08\x01\x10\x07"
      "\x0a\x02\x08\x01"
      "\x0a\x02\x10\x80"
      "\x0a\x80\x00"
      "\x0a\x02\x10\x07";
  static const char wanted[] =
      "\x0a\x02\x10\x07"
      "\x0a\x00"
      "\x0a\x00"
      "\x0a\x00"
      "\x0a\x02\x10\x07";
  struct st_filter_counts counts;
  const uint8_t* data = (const uint8_t*)in;
  CHECK(
      st_message_filter_run_trace(&filter, data, sizeof in - 1, out, &counts));
  CHECK_EQ(counts.out_size, sizeof wanted - 1);
  CHECK(!memcmp(out, wanted, counts.out_size));
  CHECK_EQ(counts.packets, 5);
  CHECK_EQ(counts.malformed, 1);
  CHECK_EQ(counts.packet_bytes, 10);
  CHECK_EQ(counts.filtered_bytes, 4);
  CHECK(
      !st_message_filter_run_trace(&filter, data, sizeof in - 2, out, &counts));
  CHECK(!st_message_filter_run_trace(&filter, data + 1, 4, out, &counts));
  const uint8_t* other = (const uint8_t*)"\x12\x02\x10\x07";
  CHECK(!st_message_filter_run_trace(&filter, other, 4, out, &counts));
  CHECK(st_message_filter_run_trace(&filter, data, 0, out, &counts));
  CHECK_EQ(counts.packets, 0);
  drop();
}

static void long_packet_may_become_short(void) {
  USE(SIMPLE(1), END);
  uint8_t in[3 + 300] = {0x0A, 0xAC, 0x02, 0x08, 0x07, 0x12, 0xA7, 0x02};
  struct st_filter_counts counts;
  CHECK(st_message_filter_run_trace(&filter, in, sizeof in, out, &counts));
  CHECK_EQ(counts.out_size, 4);
  CHECK(!memcmp(out, "\x0a\x02\x08\x07", 4));
  drop();
}

int main(void) {
  RUN(scalar_fields_are_filtered_by_their_rules);
  RUN(numbers_are_reencoded_with_the_fewest_bytes);
  RUN(nested_messages_are_filtered_in_turn);
  RUN(length_keeps_its_width);
  RUN(opaque_message_is_copied);
  RUN(malformed_messages_give_no_output);
  RUN(nesting_depth_is_bounded);
  RUN(strings_are_passed_to_the_string_filter);
  RUN(root_can_be_a_nested_message);
  RUN(each_packet_of_a_trace_is_filtered);
  RUN(long_packet_may_become_short);
  return 0;
}
