/* Test fixture of a commit batch: functions that call its sink, and a service
 * that receives its requests from a socket. */
#pragma once

#include "check.h"
#include "commit_batch.h"
#include "decoder.h"
#include "socket_pair.h"

enum { SERVICE = 1, COMMIT = 4, REGISTER = 6, UNREGISTER = 7 };

static const struct st_producer_methods kMethods = {
    .service_id = SERVICE,
    .commit_data = COMMIT,
    .register_trace_writer = REGISTER,
    .unregister_trace_writer = UNREGISTER,
};

static struct socket_pair g_pair;
static struct st_send_queue g_queue;
static struct st_commit_batch g_batch;
static uint8_t g_received[1 << 21];
static size_t g_have;
/* The number of bytes in the frames that were returned so far. */
static size_t g_used;

static inline void open_batch(uint32_t batch_bytes) {
  g_have = g_used = 0;
  g_pair = socket_pair_open();
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, 1 << 16));
  CHECK(st_commit_batch_init(&g_batch, &g_queue, &kMethods, batch_bytes));
}

static inline void close_batch(void) {
  st_commit_batch_destroy(&g_batch);
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
}

static inline void complete(uint32_t page, uint8_t index, uint32_t buffer) {
  struct st_chunk chunk = {.size = 4088, .page = page, .index = index};
  st_commit_batch_sink.chunk_complete(&g_batch, &chunk, buffer);
}

/* Sends `count` patches for chunk `chunk_id`, at offsets 0, 4, 8, ... */
static inline void patch(uint32_t chunk_id, uint32_t count, bool has_more) {
  struct st_patch_list list = {0};
  for (uint32_t i = 0; i < count; i++) {
    struct st_patch* p = malloc(sizeof *p);
    *p = (struct st_patch){.chunk_id = chunk_id,
                           .offset = (uint16_t)(4 * i),
                           .size_field = {0x81, 0x80, 0x80, 0}};
    if (list.back)
      list.back->next = p;
    else
      list.front = p;
    list.back = p;
  }
  struct st_chunk_patches patches = {.writer_id = 9,
                                     .chunk_id = chunk_id,
                                     .target_buffer = 3,
                                     .has_more = has_more,
                                     .count = count,
                                     .first = list.front};
  st_commit_batch_sink.patch(&g_batch, &patches);
  while (list.front) {
    struct st_patch* next = list.front->next;
    free(list.front);
    list.front = next;
  }
}

/* Returns the next complete frame.  The frame's bytes stay valid until the next
 * call. */
static inline bool next_frame(struct st_ipc_invoke* out) {
  size_t used = g_used;
  memmove(g_received, g_received + used, g_have - used);
  g_have -= used;
  st_send_queue_drain(&g_queue);
  g_have += socket_pair_receive_all(&g_pair, g_received + g_have,
                                    sizeof g_received - g_have);
  g_used = st_ipc_frame_get_invoke(g_received, g_have, out);
  if (g_used == 0) {
    return false;
  }
  CHECK_EQ(out->service_id, SERVICE);
  CHECK(out->drop_reply);
  return true;
}

/* Parses a message that has only varint fields.  The value of field n is stored
 * in out[n]. */
static inline void get_varints(const uint8_t* data, size_t size, uint64_t* out,
                               unsigned count) {
  struct st_decoder d;
  struct st_field f;
  memset(out, 0, count * sizeof *out);
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < count && f.wire_type == ST_WIRE_VARINT)
      out[f.number] = f.value;
  }
  CHECK_EQ(st_decoder_left(&d), 0);
}

struct request {
  unsigned moves, patch_entries, patches;
  uint64_t flush_id;
  uint64_t first_page, last_page;
  bool last_has_more;
};

static inline void count_move(struct request* r, const struct st_field* f) {
  uint64_t fields[4];
  get_varints(f->data, f->size, fields, 4);
  /* The moves of a request come before its patches. */
  CHECK_EQ(r->patch_entries, 0);
  CHECK_EQ(fields[2], fields[1] % 14);
  CHECK_EQ(fields[3], 3);
  if (r->moves++ == 0)
    r->first_page = fields[1];
  r->last_page = fields[1];
}

static inline void count_one_patch(struct request* r,
                                   const struct st_field* f) {
  struct st_decoder d;
  struct st_field part;
  st_decoder_init(&d, f->data, f->size);
  CHECK(st_decoder_next(&d, &part));
  CHECK_EQ(part.number, 1);
  CHECK_EQ(part.value % 4, 0);
  CHECK(st_decoder_next(&d, &part));
  CHECK_EQ(part.number, 2);
  CHECK_EQ(part.size, 4);
  CHECK_EQ(memcmp(part.data, "\x81\x80\x80\0", 4), 0);
  r->patches++;
}

static inline void count_patches(struct request* r, const struct st_field* f) {
  uint64_t fields[6];
  get_varints(f->data, f->size, fields, 6);
  CHECK_EQ(fields[1], 3);
  CHECK_EQ(fields[2], 9);
  r->last_has_more = fields[5];
  r->patch_entries++;
  struct st_decoder d;
  struct st_field part;
  st_decoder_init(&d, f->data, f->size);
  while (st_decoder_next(&d, &part)) {
    if (part.number == 4)
      count_one_patch(r, &part);
  }
}

static inline bool next_commit(struct request* r) {
  struct st_ipc_invoke invoke;
  memset(r, 0, sizeof *r);
  if (!next_frame(&invoke))
    return false;
  CHECK_EQ(invoke.method_id, COMMIT);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, invoke.args, invoke.args_size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == 1)
      count_move(r, &f);
    else if (f.number == 2)
      count_patches(r, &f);
    else if (f.number == 3)
      r->flush_id = f.value;
    else
      CHECK(!"unknown field");
  }
  CHECK_EQ(st_decoder_left(&d), 0);
  return true;
}

static inline void expect_nothing(void) {
  struct st_ipc_invoke invoke;
  CHECK(!next_frame(&invoke));
}

static inline void expect_writer(uint32_t method, uint64_t writer,
                                 uint64_t buffer) {
  struct st_ipc_invoke invoke;
  uint64_t fields[3];
  CHECK(next_frame(&invoke));
  CHECK_EQ(invoke.method_id, method);
  get_varints(invoke.args, invoke.args_size, fields, 3);
  CHECK_EQ(fields[1], writer);
  CHECK_EQ(fields[2], buffer);
}

/* Fills the send queue with frames of 1000 bytes, so that it refuses any
 * further frame of that size. */
static inline void block_queue(void) {
  uint8_t filler[1000 - 4] = {0};
  uint8_t frame[1000];
  uint32_t length = sizeof filler;
  memcpy(frame, &length, 4);
  memcpy(frame + 4, filler, sizeof filler);
  while (st_send_queue_push(&g_queue, frame, sizeof frame, -1)) {
  }
  /* Smaller frames fill the rest of the queue, so that no commit fits. */
  while (st_send_queue_push(&g_queue, "\0\0\0\0", 4, -1)) {
  }
}

/* Receives the frames of block_queue().  The queue then calls the room
 * listener, which sends the batch. */
static inline void unblock_queue(void) {
  do {
    g_have += socket_pair_receive_all(&g_pair, g_received + g_have, 1 << 16);
    st_send_queue_drain(&g_queue);
  } while (st_send_queue_pending(&g_queue) > 0);
  g_have += socket_pair_receive_all(&g_pair, g_received + g_have, 1 << 16);
  size_t at = 0;
  uint32_t length;
  struct st_ipc_invoke invoke;
  while (at < g_have &&
         !st_ipc_frame_get_invoke(g_received + at, g_have - at, &invoke)) {
    memcpy(&length, g_received + at, 4);
    at += 4 + length;
  }
  memmove(g_received, g_received + at, g_have - at);
  g_have -= at;
}
