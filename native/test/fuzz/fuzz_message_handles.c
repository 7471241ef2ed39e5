/* Fuzzes writer misuse: uses any handle, open, ended or stale, in any order.
 *
 * A handle is stale if its serial is not that of the message.  Like the
 * bindings, the target checks this first, and does not write to a stale handle.
 * A write to an ended message must change nothing.  The output must always be a
 * complete message of the size that the stream reports, and bytes around the
 * buffers must not change. */
#define CHECK_ABORTS
#include "../message_script.h"
#include "core/decoder.h"
#include "core/message_arena.h"

enum { HANDLES = 16, BUFFER_BYTES = 4096, GUARD = 64 };

struct handle {
  struct st_arena_message* at;
  uint64_t serial;
};

static uint8_t memory[BUFFER_BYTES + 2 * GUARD];
static struct st_stream_writer stream;
static struct st_arena_message root;
static struct handle handles[HANDLES];

/* The only buffer of the stream, between guard bytes.  Bytes beyond the
 * buffer's room are discarded and counted. */
static void start(size_t size) {
  memset(memory, 0xA5, sizeof memory);
  memset(&root, 0, sizeof root);
  st_stream_init_fixed(&stream, memory + GUARD, size);
  st_message_init_root(&root.message, &stream);
  for (int i = 0; i < HANDLES; i++)
    handles[i] = (struct handle){&root, root.serial};
}

static uint64_t total_misuse(void) {
  uint64_t misuse = 0;
  for (struct st_arena_message* m = &root; m; m = m->deeper)
    misuse += m->message.misuse;
  return misuse;
}

static void append(struct script* s, struct st_message* m) {
  bool was_finalized = m->finalized;
  uint32_t size = m->size;
  uint64_t written = st_stream_written(&stream);
  uint64_t misuse = total_misuse();
  uint32_t v = script_u16(s);
  switch (script_byte(s) % 5) {
    case 0:
      st_message_append_varint(m, 1 + v % 2000, v);
      break;
    case 1:
      st_message_append_fixed32(m, 5, v);
      break;
    case 2:
      st_message_append_fixed64(m, 6, v);
      break;
    case 3:
      st_message_append_bytes(m, 7, script_payload(), v % 300);
      break;
    case 4:
      st_message_append_raw(m, "\x08\x01", 2);
      break;
  }
  if (!was_finalized)
    return;
  CHECK_EQ(m->size, size);
  CHECK_EQ(st_stream_written(&stream), written);
  CHECK_EQ(total_misuse(), misuse + 1);
}

static void step(struct script* s) {
  struct handle* h = &handles[script_byte(s) % HANDLES];
  uint8_t what = script_byte(s);
  if (h->at->serial != h->serial)
    return; /* Like a binding, the fuzz target does not use a stale handle. */
  if (what < 120) {
    append(s, &h->at->message);
  } else if (what < 220) {
    struct st_arena_message* child = st_arena_begin_nested(h->at, 1 + what % 9);
    CHECK(child);
    handles[what % HANDLES] = (struct handle){child, child->serial};
  } else {
    st_message_finalize(&h->at->message);
  }
}

/* Checks that each nested field contains a complete message, which ends where
 * its length says. */
static void check_whole(const uint8_t* data, size_t size, unsigned depth) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (depth < 40 && st_decoder_next(&d, &f)) {
    bool is_nested = f.wire_type == ST_WIRE_DELIMITED && f.number != 7;
    if (is_nested)
      check_whole(f.data, f.size, depth + 1);
  }
  CHECK(depth == 40 || st_decoder_left(&d) == 0);
}

static void check_guards(size_t size) {
  for (int i = 0; i < GUARD; i++) {
    CHECK_EQ(memory[i], 0xA5);
    CHECK_EQ(memory[GUARD + size + (size_t)i], 0xA5);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct script s = {data, data + size};
  size_t room = script_byte(&s) % 4 ? BUFFER_BYTES : script_byte(&s);
  start(room);
  while (s.p < s.end)
    step(&s);
  st_message_finalize(&root.message);
  CHECK(!stream.innermost);
  if (!stream.overflowed) {
    CHECK_EQ(st_stream_written(&stream), root.message.size);
    check_whole(memory + GUARD, root.message.size, 0);
  }
  check_guards(room);
  st_arena_free(&root);
  return 0;
}
