/* Tests of messages: their encoding, especially of nested sizes. */
#include "core/message.h"

#include "check.h"
#include "message_check.h"
#include "random.h"

static uint8_t buffer[4096];
static struct st_stream_writer stream;
static struct st_message root;

static void start(void) {
  memset(buffer, 0xCC, sizeof buffer);
  st_stream_init_fixed(&stream, buffer, sizeof buffer);
  st_message_init_root(&root, &stream);
}

static void expect(const char* bytes, size_t size) {
  CHECK_EQ(st_message_finalize(&root), size);
  CHECK_EQ(st_stream_written(&stream), size);
  CHECK(memcmp(buffer, bytes, size) == 0);
}

#define EXPECT(literal) expect(literal, sizeof(literal) - 1)

static void test_basic_types_are_encoded(void) {
  start();
  st_message_append_varint(&root, 1, 0);
  st_message_append_varint(&root, 2, 300);
  st_message_append_varint(&root, 3, (uint64_t)-1);
  st_message_append_fixed32(&root, 4, 0x01020304);
  st_message_append_fixed64(&root, 5, 0x0102030405060708);
  st_message_append_bytes(&root, 200, "hello", 5);
  st_message_append_raw(&root, "\x08\x07", 2);
  EXPECT(
      "\x08\x00\x10\xAC\x02"
      "\x18\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
      "\x25\x04\x03\x02\x01"
      "\x29\x08\x07\x06\x05\x04\x03\x02\x01"
      "\xC2\x0C\x05hello\x08\x07");
}

static void test_empty_strings_are_encoded(void) {
  start();
  st_message_append_bytes(&root, 1, "", 0);
  st_message_append_bytes(&root, 2, NULL, 0);
  st_message_append_raw(&root, NULL, 0);
  EXPECT("\x0A\x00\x12\x00");
}

static void test_small_nested_message_gets_a_one_byte_length(void) {
  start();
  struct st_message a, b;
  st_message_begin_nested(&root, &a, 1);
  st_message_append_varint(&a, 1, 1);
  st_message_begin_nested(&a, &b, 2);
  st_message_append_varint(&b, 1, 2);
  CHECK_EQ(st_message_finalize(&b), 2);
  st_message_append_varint(&a, 3, 3);
  EXPECT("\x0A\x08\x08\x01\x12\x02\x08\x02\x18\x03");
}

static void test_parent_append_finalizes_descendants(void) {
  start();
  struct st_message a, b, c;
  st_message_begin_nested(&root, &a, 1);
  st_message_begin_nested(&a, &b, 2);
  st_message_begin_nested(&b, &c, 3);
  st_message_append_varint(&c, 1, 5);
  st_message_append_raw(&root, "\x08\x09", 2);
  CHECK(a.finalized && b.finalized && c.finalized);
  st_message_begin_nested(&root, &a, 1);
  /* The open message is finalized when its sibling begins. */
  st_message_begin_nested(&root, &b, 1);
  CHECK(a.finalized);
  EXPECT("\x0A\x06\x12\x04\x1A\x02\x08\x05\x08\x09\x0A\x00\x0A\x00");
}

static void test_struct_can_be_reused_for_each_sibling(void) {
  start();
  struct st_message a;
  for (unsigned i = 1; i <= 3; i++) {
    st_message_begin_nested(&root, &a, 1);
    st_message_append_varint(&a, 1, i);
  }
  EXPECT("\x0A\x02\x08\x01\x0A\x02\x08\x02\x0A\x02\x08\x03");
}

static void test_nested_messages_are_compact_up_to_127_bytes(void) {
  uint8_t payload[128] = {0};
  struct st_message a;
  start();
  st_message_begin_nested(&root, &a, 1);
  st_message_append_raw(&a, payload, 127);
  CHECK_EQ(st_message_finalize(&root), 2 + 127);
  CHECK(memcmp(buffer, "\x0A\x7F\x00", 3) == 0);
  start();
  st_message_begin_nested(&root, &a, 1);
  st_message_append_raw(&a, payload, 128);
  CHECK_EQ(st_message_finalize(&root), 5 + 128);
  CHECK(memcmp(buffer, "\x0A\x80\x81\x80\x00\x00", 6) == 0);
}

static void test_append_to_finalized_message_is_discarded_and_counted(void) {
  start();
  struct st_message a, b;
  st_message_begin_nested(&root, &a, 1);
  CHECK_EQ(st_message_finalize(&a), 0);
  /* A second call of finalize has no effect. */
  CHECK_EQ(st_message_finalize(&a), 0);
  st_message_append_varint(&a, 1, 1);
  st_message_begin_nested(&a, &b, 1);
  st_message_append_varint(&b, 1, 1);
  CHECK_EQ(a.misuse, 2);
  CHECK_EQ(b.misuse, 1);
  EXPECT("\x0A\x00");
}

static void test_bytes_beyond_the_maximal_size_are_discarded(void) {
  /* The sizes are volatile, because gcc 16 warns of constant sizes that are too
   * large. */
  volatile size_t large = ST_MAX_MESSAGE_SIZE, huge = SIZE_MAX / 2;
  start();
  st_message_append_bytes(&root, 1, buffer, large);
  st_message_append_raw(&root, buffer, huge);
  CHECK(stream.overflowed > ST_MAX_MESSAGE_SIZE);
  CHECK_EQ(st_stream_written(&stream), 0);
  CHECK_EQ(root.size, 0);
}

static void test_random_messages_match_a_plain_encoder(void) {
  static uint8_t bytes[6000];
  uint64_t state = 42;
  for (int i = 0; i < 400; i++) {
    random_fill(&state, bytes, sizeof bytes);
    check_message(bytes, random_below(&state, i % 4 ? 200 : sizeof bytes));
  }
}

int main(void) {
  RUN(test_basic_types_are_encoded);
  RUN(test_empty_strings_are_encoded);
  RUN(test_small_nested_message_gets_a_one_byte_length);
  RUN(test_parent_append_finalizes_descendants);
  RUN(test_struct_can_be_reused_for_each_sibling);
  RUN(test_nested_messages_are_compact_up_to_127_bytes);
  RUN(test_append_to_finalized_message_is_discarded_and_counted);
  RUN(test_bytes_beyond_the_maximal_size_are_discarded);
  RUN(test_random_messages_match_a_plain_encoder);
  return 0;
}
