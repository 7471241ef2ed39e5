#include "commit_batch.h"

#include <sys/wait.h>

#include "check.h"
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
static size_t g_used; /* of them, by the frame returned last */

static void open_batch(uint32_t batch_bytes) {
  g_have = g_used = 0;
  g_pair = socket_pair_open();
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, 1 << 16));
  CHECK(st_commit_batch_init(&g_batch, &g_queue, &kMethods, batch_bytes));
}

static void close_batch(void) {
  st_commit_batch_destroy(&g_batch);
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
}

/* --- what the sink is given --- */

static void complete(uint32_t page, uint8_t index, uint16_t buffer) {
  struct st_chunk chunk = {.size = 4088, .page = page, .index = index};
  st_commit_batch_sink.chunk_complete(&g_batch, &chunk, buffer);
}

/* `count` patches for chunk `chunk_id`, at offsets 0, 4, 8, ... */
static void patch(uint32_t chunk_id, uint32_t count, bool has_more) {
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

/* --- what the service sees --- */

/* The next whole frame; its bytes stay valid until the next call. */
static bool next_frame(struct st_ipc_invoke* out) {
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

/* Fields 1.. of a flat message of varints, by number. */
static void get_varints(const uint8_t* data, size_t size, uint64_t* out,
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

static void count_move(struct request* r, const struct st_field* f) {
  uint64_t fields[4];
  get_varints(f->data, f->size, fields, 4);
  CHECK_EQ(r->patch_entries, 0); /* moves come first */
  CHECK_EQ(fields[2], fields[1] % 14);
  CHECK_EQ(fields[3], 3);
  if (r->moves++ == 0)
    r->first_page = fields[1];
  r->last_page = fields[1];
}

static void count_one_patch(struct request* r, const struct st_field* f) {
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

static void count_patches(struct request* r, const struct st_field* f) {
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

static bool next_commit(struct request* r) {
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

static void expect_nothing(void) {
  struct st_ipc_invoke invoke;
  CHECK(!next_frame(&invoke));
}

static void expect_writer(uint32_t method, uint64_t writer, uint64_t buffer) {
  struct st_ipc_invoke invoke;
  uint64_t fields[3];
  CHECK(next_frame(&invoke));
  CHECK_EQ(invoke.method_id, method);
  get_varints(invoke.args, invoke.args_size, fields, 3);
  CHECK_EQ(fields[1], writer);
  CHECK_EQ(fields[2], buffer);
}

/* --- cases --- */

static void each_chunk_leaves_at_once_without_batching(void) {
  struct request r;
  open_batch(0);
  for (uint32_t page = 0; page < 3; page++) {
    complete(page, (uint8_t)(page % 14), 3);
    CHECK(next_commit(&r));
    CHECK_EQ(r.moves, 1);
    CHECK_EQ(r.first_page, page);
  }
  expect_nothing();
  close_batch();
}

static void a_batch_leaves_when_it_is_full(void) {
  struct request r;
  open_batch(3 * 4088);
  complete(0, 0, 3);
  complete(1, 1, 3);
  expect_nothing();
  complete(2, 2, 3);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 3);
  complete(3, 3, 3); /* the sum starts anew */
  expect_nothing();
  close_batch();
}

static void flush_sends_what_there_is(void) {
  struct request r;
  open_batch(1 << 20);
  st_commit_batch_flush(&g_batch);
  expect_nothing();
  complete(5, 5, 3);
  st_commit_batch_sink.flush(&g_batch);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  close_batch();
}

static void patches_take_the_batch_along(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  patch(77, 2, true);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  CHECK_EQ(r.patches, 2);
  CHECK(r.last_has_more);
  patch(77, 1, false);
  CHECK(next_commit(&r));
  CHECK(!r.last_has_more);
  close_batch();
}

static void many_patches_of_a_chunk_are_split(void) {
  struct request r;
  unsigned patches = 0, entries = 0;
  open_batch(0);
  patch(77, 5000, false);
  while (next_commit(&r)) {
    patches += r.patches;
    entries += r.patch_entries;
    CHECK_EQ(r.last_has_more, patches < 5000);
  }
  CHECK_EQ(patches, 5000);
  CHECK(entries > 1);
  close_batch();
}

static void flush_ids_follow_the_chunks(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  st_commit_batch_notify_flush_complete(&g_batch, 42);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  CHECK_EQ(r.flush_id, 42);
  complete(2, 2, 3);
  st_commit_batch_flush(&g_batch);
  CHECK(next_commit(&r));
  CHECK_EQ(r.flush_id, 0); /* once only */
  close_batch();
}

static void writers_are_announced_behind_their_predecessors_chunks(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  st_commit_batch_sink.register_writer(&g_batch, 5, 3);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  expect_writer(REGISTER, 5, 3);
  complete(2, 2, 3);
  st_commit_batch_sink.unregister_writer(&g_batch, 5);
  CHECK(next_commit(&r));
  expect_writer(UNREGISTER, 5, 0);
  close_batch();
}

/* Makes the queue refuse; what fills it are frames of 1000 bytes. */
static void block_queue(void) {
  uint8_t filler[1000 - 4] = {0};
  uint8_t frame[1000];
  uint32_t length = sizeof filler;
  memcpy(frame, &length, 4);
  memcpy(frame + 4, filler, sizeof filler);
  while (st_send_queue_push(&g_queue, frame, sizeof frame, -1)) {
  }
  /* And the crumbs, so that no commit slips in. */
  while (st_send_queue_push(&g_queue, "\0\0\0\0", 4, -1)) {
  }
}

/* Receives the filling away, on which the room listener sends the batch. */
static void unblock_queue(void) {
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

static void what_the_queue_refuses_leaves_later_in_order(void) {
  struct request r;
  open_batch(0);
  block_queue();
  for (uint32_t page = 0; page < 5; page++)
    complete(page, (uint8_t)(page % 14), 3);
  patch(77, 1, false);
  st_commit_batch_sink.unregister_writer(&g_batch, 5);
  st_commit_batch_sink.register_writer(&g_batch, 5, 4);
  st_commit_batch_notify_flush_complete(&g_batch, 7);
  st_commit_batch_notify_flush_complete(&g_batch, 8);
  unblock_queue();
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 5);
  CHECK_EQ(r.first_page, 0);
  CHECK_EQ(r.last_page, 4);
  CHECK_EQ(r.patches, 1);
  CHECK_EQ(r.flush_id, 8);
  expect_writer(UNREGISTER, 5, 0);
  expect_writer(REGISTER, 5, 4);
  expect_nothing();
  close_batch();
}

static void a_long_backlog_is_split_into_requests(void) {
  enum { CHUNKS = 10000 };
  struct request r;
  open_batch(0);
  block_queue();
  for (uint32_t page = 0; page < CHUNKS; page++)
    complete(page, (uint8_t)(page % 14), 3);
  patch(77, 1, false);
  st_commit_batch_notify_flush_complete(&g_batch, 7);
  unblock_queue();
  unsigned moves = 0, requests = 0;
  uint64_t flush_id = 0;
  while (next_commit(&r)) {
    if (r.moves > 0)
      CHECK_EQ(r.first_page, moves);
    CHECK_EQ(flush_id, 0); /* the acknowledgement comes last */
    moves += r.moves;
    flush_id = r.flush_id;
    requests++;
  }
  CHECK_EQ(moves, CHUNKS);
  CHECK_EQ(flush_id, 7);
  CHECK(requests > 1);
  CHECK_EQ(g_batch.lost_commits, 0);
  close_batch();
}

static void a_service_that_never_reads_cannot_grow_us(void) {
  open_batch(0);
  block_queue();
  for (uint32_t i = 0; i < 1000000; i++)
    complete(i, (uint8_t)(i % 14), 3);
  CHECK(g_batch.lost_commits > 0);
  CHECK(g_batch.moves.capacity <= ST_COMMIT_MAX_PENDING);
  close_batch();
}

static void a_broken_queue_empties_the_batch(void) {
  open_batch(1 << 20);
  complete(1, 1, 3);
  st_send_queue_break(&g_queue);
  complete(2, 2, 3);
  st_commit_batch_notify_flush_complete(&g_batch, 7);
  CHECK_EQ(g_batch.moves.size, 0);
  CHECK_EQ(g_batch.flush_request_id, 0);
  close_batch();
}

static void destroy_sends_the_rest(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  st_commit_batch_destroy(&g_batch);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
}

static void a_forked_child_commits_nothing(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  pid_t pid = fork();
  if (pid == 0) {
    bool good = g_batch.moves.size == 0;
    complete(2, 2, 3);
    st_commit_batch_destroy(&g_batch);
    _exit(good ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  expect_nothing();
  st_commit_batch_flush(&g_batch);
  CHECK(next_commit(&r));
  CHECK_EQ(r.first_page, 1);
  CHECK_EQ(r.moves, 1);
  close_batch();
}

enum { THREADS = 4, CHUNKS_EACH = 3000 };

static void* complete_many(void* arg) {
  for (uint32_t i = 0; i < CHUNKS_EACH; i++) {
    uint32_t page = i * THREADS + (uint32_t)(intptr_t)arg;
    complete(page, (uint8_t)(page % 14), 3);
  }
  return NULL;
}

static void threads_lose_no_chunk(void) {
  pthread_t threads[THREADS];
  struct request r;
  open_batch(0);
  for (intptr_t i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, complete_many, (void*)i), 0);
  unsigned total = 0;
  while (total < THREADS * CHUNKS_EACH) {
    if (next_commit(&r))
      total += r.moves;
  }
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  CHECK_EQ(total, THREADS * CHUNKS_EACH);
  expect_nothing();
  close_batch();
}

int main(void) {
  RUN(each_chunk_leaves_at_once_without_batching);
  RUN(a_batch_leaves_when_it_is_full);
  RUN(flush_sends_what_there_is);
  RUN(patches_take_the_batch_along);
  RUN(many_patches_of_a_chunk_are_split);
  RUN(flush_ids_follow_the_chunks);
  RUN(writers_are_announced_behind_their_predecessors_chunks);
  RUN(what_the_queue_refuses_leaves_later_in_order);
  RUN(a_long_backlog_is_split_into_requests);
  RUN(a_service_that_never_reads_cannot_grow_us);
  RUN(a_broken_queue_empties_the_batch);
  RUN(destroy_sends_the_rest);
  RUN(a_forked_child_commits_nothing);
  RUN(threads_lose_no_chunk);
  return 0;
}
