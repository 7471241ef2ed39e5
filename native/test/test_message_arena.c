/* Tests of message arenas: handles outlive their messages. */
#include "core/message_arena.h"

#include <string.h>

#include "check.h"

static uint8_t buffer[4096];
static struct st_stream_writer stream;
static struct st_arena_message root;

static void start(void) {
  memset(&root, 0, sizeof root);
  st_stream_init_fixed(&stream, buffer, sizeof buffer);
  st_message_init_root(&root.message, &stream);
}

static void expect(const char* bytes, size_t size) {
  CHECK_EQ(st_message_finalize(&root.message), size);
  CHECK(memcmp(buffer, bytes, size) == 0);
  st_arena_free(&root);
  CHECK(!root.deeper);
}

static void siblings_share_a_struct_and_differ_by_serial(void) {
  start();
  struct st_arena_message* first = st_arena_begin_nested(&root, 1);
  uint64_t serial = first->serial;
  st_message_append_varint(&first->message, 1, 1);
  struct st_arena_message* second = st_arena_begin_nested(&root, 1);
  CHECK(first == second);
  CHECK(second->serial != serial);
  st_message_append_varint(&second->message, 1, 2);
  expect("\x0A\x02\x08\x01\x0A\x02\x08\x02", 8);
}

static void opening_a_sibling_finalizes_nested_messages(void) {
  start();
  struct st_arena_message* a = st_arena_begin_nested(&root, 1);
  struct st_arena_message* b = st_arena_begin_nested(a, 2);
  struct st_arena_message* c = st_arena_begin_nested(b, 3);
  uint64_t serial = c->serial;
  st_arena_begin_nested(&root, 4);
  CHECK(b->message.finalized && c->message.finalized);
  /* No other message has reused the struct of the ended message. */
  CHECK_EQ(c->serial, serial);
  expect("\x0A\x04\x12\x02\x1A\x00\x22\x00", 8);
}

static void message_opened_in_a_finalized_one_is_finalized(void) {
  start();
  struct st_arena_message* a = st_arena_begin_nested(&root, 1);
  st_message_finalize(&a->message);
  struct st_arena_message* b = st_arena_begin_nested(a, 2);
  CHECK(b->message.finalized);
  st_message_append_varint(&b->message, 1, 1);
  CHECK_EQ(a->message.misuse, 1);
  CHECK_EQ(b->message.misuse, 1);
  expect("\x0A\x00", 2);
}

static void structs_are_reused_after_deep_nesting(void) {
  start();
  for (int round = 0; round < 2; round++) {
    struct st_arena_message* m = &root;
    for (int depth = 0; depth < 200; depth++)
      m = st_arena_begin_nested(m, 1);
    CHECK_EQ(m->serial, (uint64_t)round + 1);
    st_message_append_varint(&m->message, 2, 5);
  }
  size_t size = st_message_finalize(&root.message);
  CHECK_EQ(size % 2, 0);
  CHECK(memcmp(buffer, buffer + size / 2, size / 2) == 0);
  st_arena_free(&root);
}

int main(void) {
  RUN(siblings_share_a_struct_and_differ_by_serial);
  RUN(opening_a_sibling_finalizes_nested_messages);
  RUN(message_opened_in_a_finalized_one_is_finalized);
  RUN(structs_are_reused_after_deep_nesting);
  return 0;
}
