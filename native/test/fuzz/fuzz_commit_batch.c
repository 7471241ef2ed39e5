/* Fuzzes a commit batch over a small, often full socket: any sequence of
 * chunks, patches, writers, flushes and reads.  The service must get each
 * chunk once and in order, patches never before their chunk, and only whole
 * frames. */
#define CHECK_ABORTS
#include "check.h"
#include "commit_batch.h"
#include "decoder.h"
#include "socket_pair.h"

enum { COMMIT = 4, REGISTER = 6, UNREGISTER = 7, CHUNK_SIZE = 512 };

static struct socket_pair g_pair;
static struct st_send_queue g_queue;
static struct st_commit_batch g_batch;

/* The numbers of chunks and patches that were committed (in) and received
 * (out). */
static uint32_t g_chunks_in, g_chunks_out, g_patches_in, g_patches_out;
static uint32_t g_changes_in, g_changes_out;
static uint64_t g_flush_in, g_flush_out;
static uint8_t g_received[1 << 20];
static size_t g_have;

static void complete(void) {
  struct st_chunk chunk = {.size = CHUNK_SIZE, .page = g_chunks_in++};
  st_commit_batch_sink.chunk_complete(&g_batch, &chunk, 1);
}

/* Sends patches for the chunk that was completed last. */
static void patch(uint32_t count) {
  static struct st_patch nodes[600];
  for (uint32_t i = 0; i < count; i++) {
    nodes[i] = (struct st_patch){.next = i + 1 < count ? &nodes[i + 1] : NULL,
                                 .chunk_id = g_chunks_in,
                                 .offset = (uint16_t)i,
                                 .size_field = {0x80, 0x80, 0x80, 0}};
  }
  struct st_chunk_patches patches = {.writer_id = 1,
                                     .chunk_id = g_chunks_in,
                                     .target_buffer = 1,
                                     .count = count,
                                     .first = nodes};
  g_patches_in += count;
  st_commit_batch_sink.patch(&g_batch, &patches);
}

static void change_writer(void) {
  uint16_t id = (uint16_t)(g_changes_in++ % ST_MAX_WRITER_ID + 1);
  if (id % 2)
    st_commit_batch_sink.register_writer(&g_batch, id, 1);
  else
    st_commit_batch_sink.unregister_writer(&g_batch, id);
}

static uint64_t varint_field(const struct st_field* message, uint32_t number) {
  struct st_decoder d;
  struct st_field f;
  uint64_t value = 0;
  st_decoder_init(&d, message->data, message->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == number)
      value = f.value;
    if (message->number == 2 && f.number == 4 && number == 3)
      g_patches_out++;
  }
  CHECK_EQ(st_decoder_left(&d), 0);
  return value;
}

static void check_commit(const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == 1) {
      CHECK_EQ(varint_field(&f, 1), g_chunks_out);
      g_chunks_out++;
    } else if (f.number == 2) {
      CHECK(varint_field(&f, 3) <= g_chunks_out);
    } else {
      CHECK_EQ(f.number, 3);
      CHECK(f.value > g_flush_out);
      g_flush_out = f.value;
    }
  }
  CHECK_EQ(st_decoder_left(&d), 0);
}

static void check_change(const uint8_t* data, size_t size, bool registers) {
  struct st_field message = {.data = data, .size = size};
  uint32_t id = g_changes_out++ % ST_MAX_WRITER_ID + 1;
  CHECK_EQ(varint_field(&message, 1), id);
  CHECK_EQ(registers, id % 2);
}

static void receive(size_t max) {
  int fd;
  size_t room = sizeof g_received - g_have;
  g_have += socket_pair_receive(&g_pair, g_received + g_have,
                                max < room ? max : room, &fd);
  struct st_ipc_invoke frame;
  size_t used = 0, n;
  while (
      (n = st_ipc_frame_get_invoke(g_received + used, g_have - used, &frame))) {
    if (frame.method_id == COMMIT)
      check_commit(frame.args, frame.args_size);
    else
      check_change(frame.args, frame.args_size, frame.method_id == REGISTER);
    used += n;
  }
  memmove(g_received, g_received + used, g_have - used);
  g_have -= used;
}

static void step(uint8_t op, uint8_t amount) {
  switch (op % 8) {
    case 0:
    case 1:
      for (unsigned i = 0; i <= amount; i++)
        complete();
      break;
    case 2:
      patch((uint32_t)amount * 2 + 1);
      break;
    case 3:
      change_writer();
      break;
    case 4:
      st_commit_batch_notify_flush_complete(&g_batch, ++g_flush_in);
      break;
    case 5:
      receive((size_t)amount * 64 + 1);
      break;
    case 6:
      st_send_queue_drain(&g_queue);
      break;
    default:
      st_commit_batch_flush(&g_batch);
  }
}

static void receive_the_rest(void) {
  size_t pending;
  do {
    st_commit_batch_flush(&g_batch);
    st_send_queue_drain(&g_queue);
    pending = st_send_queue_pending(&g_queue);
    receive(sizeof g_received);
  } while (pending > 0 || g_batch.pending.moves.size ||
           g_batch.pending.patches.size || g_batch.changes.size ||
           g_batch.pending.flush_request_id);
  receive(sizeof g_received);
  CHECK_EQ(g_have, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const struct st_producer_methods methods = {1, COMMIT, REGISTER,
                                                     UNREGISTER};
  if (size < 2)
    return 0;
  g_chunks_in = g_chunks_out = g_patches_in = g_patches_out = 0;
  g_changes_in = g_changes_out = 0;
  g_flush_in = g_flush_out = 0;
  g_have = 0;
  g_pair = socket_pair_open();
  size_t limit = 16384 + (size_t)data[0] * 64;
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, limit));
  CHECK(st_commit_batch_init(&g_batch, &g_queue, &methods,
                             (uint32_t)data[1] * CHUNK_SIZE));
  for (size_t i = 2; i + 1 < size && i < 512; i += 2)
    step(data[i], data[i + 1]);
  receive_the_rest();
  CHECK_EQ(g_chunks_out, g_chunks_in);
  CHECK_EQ(g_patches_out, g_patches_in);
  CHECK_EQ(g_changes_out, g_changes_in);
  CHECK_EQ(g_flush_out, g_flush_in);
  CHECK_EQ(g_batch.pending.lost_commits, 0);
  st_commit_batch_destroy(&g_batch);
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
  return 0;
}
