/* Tests of packed fields, in the inline array and on the heap. */
#include "core/packed.h"

#include <string.h>

#include "check.h"
#include "core/decoder.h"

static uint8_t buffer[1 << 20];
static struct st_stream_writer stream;
static struct st_message root;
static struct st_packed packed;

static void start(void) {
  st_stream_init_fixed(&stream, buffer, sizeof buffer);
  st_message_init_root(&root, &stream);
  st_packed_init(&packed);
}

static size_t finish(void) {
  st_message_append_packed(&root, 3, &packed);
  st_packed_free(&packed);
  CHECK_EQ(st_packed_size(&packed), 0);
  return st_message_finalize(&root);
}

static void elements_are_encoded_one_after_the_other(void) {
  start();
  CHECK(st_packed_add_varint(&packed, 1));
  CHECK(st_packed_add_varint(&packed, 300));
  CHECK(st_packed_add_varint(&packed, UINT64_MAX));
  CHECK_EQ(finish(), 2 + 13);
  CHECK(memcmp(buffer,
               "\x1A\x0D\x01\xAC\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
               15) == 0);
}

static void fixed_elements_are_encoded(void) {
  start();
  CHECK(st_packed_add_fixed(&packed, 0x1122334455667788, 4));
  CHECK(st_packed_add_fixed(&packed, 0x1122334455667788, 8));
  CHECK_EQ(finish(), 2 + 12);
  CHECK(memcmp(buffer,
               "\x1A\x0C\x88\x77\x66\x55\x88\x77\x66\x55\x44\x33\x22\x11",
               14) == 0);
}

static void field_without_elements_has_length_0(void) {
  start();
  CHECK_EQ(finish(), 2);
  CHECK(memcmp(buffer, "\x1A\x00", 2) == 0);
}

/* Tests payloads whose sizes are around the size of the inline array. */
static void elements_move_to_the_heap_when_the_array_is_full(void) {
  for (uint64_t count = 0; count < 60000; count = count * 2 + 2039) {
    start();
    for (uint64_t i = 0; i < count; i++)
      CHECK(i % 2 ? st_packed_add_varint(&packed, i)
                  : st_packed_add_varint(&packed, i << 20));
    size_t size = finish();
    struct st_decoder d;
    struct st_field f;
    st_decoder_init(&d, buffer, size);
    CHECK(st_decoder_next(&d, &f));
    const uint8_t* p = f.data;
    for (uint64_t i = 0; i < count; i++) {
      uint64_t value = 0;
      p = st_get_element(p, f.data + f.size, ST_WIRE_VARINT, &value);
      CHECK(p);
      CHECK_EQ(value, i % 2 ? i : i << 20);
    }
    CHECK(p == f.data + f.size);
  }
}

static void elements_beyond_the_maximal_length_are_refused(void) {
  start();
  CHECK(!st_packed_grow(&packed, (size_t)ST_MAX_MESSAGE_SIZE + 1));
  CHECK(st_packed_add_varint(&packed, 1));
  CHECK(!st_packed_grow(&packed, (size_t)ST_MAX_MESSAGE_SIZE));
  CHECK_EQ(finish(), 3);
}

int main(void) {
  RUN(elements_are_encoded_one_after_the_other);
  RUN(fixed_elements_are_encoded);
  RUN(field_without_elements_has_length_0);
  RUN(elements_move_to_the_heap_when_the_array_is_full);
  RUN(elements_beyond_the_maximal_length_are_refused);
  return 0;
}
