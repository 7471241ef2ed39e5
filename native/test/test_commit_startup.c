/* Tests of startup: chunks that are written before a service has answered, and
 * are sent or dropped after it has. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commit_service.h"
#include "trace_writer.h"

enum {
  PAGES = 8,
  PAGE_SIZE = 4096,
  MAX_MOVES = PAGES * ST_MAX_CHUNKS_PER_PAGE
};
enum { FIRST = 1u << ST_RESERVATION_SHIFT, SECOND = 2u << 16 };

static _Alignas(4096) uint8_t g_memory[PAGES * PAGE_SIZE];
static struct st_arbiter g_arbiter;

static void start(void) {
  struct st_shm shm;
  memset(g_memory, 0, sizeof g_memory);
  g_have = g_used = 0;
  CHECK(st_shm_init(&shm, g_memory, sizeof g_memory, PAGE_SIZE));
  CHECK(st_commit_batch_init(&g_batch, NULL, NULL, 0));
  CHECK(st_arbiter_init(&g_arbiter, &shm, &st_commit_batch_sink, &g_batch));
}

static void open_queue(void) {
  g_pair = socket_pair_open();
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, 1 << 20));
}

static void connect_service(void) {
  open_queue();
  st_commit_batch_bind(&g_batch, &g_queue, &kMethods);
}

static void end(void) {
  st_arbiter_destroy(&g_arbiter);
  close_batch();
}

static bool write_bytes(struct st_trace_writer* w, size_t size) {
  static const uint8_t packet[PAGE_SIZE];
  struct st_iovec piece = {packet, size};
  return st_trace_writer_append(w, &piece, 1);
}

static void write_one(struct st_trace_writer* w) {
  CHECK(write_bytes(w, 2));
}

/* Registers a writer, writes one packet, and unregisters it. */
static void write_into(uint32_t target_buffer) {
  struct st_trace_writer w;
  CHECK(st_trace_writer_init(&w, &g_arbiter, target_buffer, ST_DROP));
  write_one(&w);
  st_trace_writer_destroy(&w);
}

static enum st_chunk_state state_of(uint32_t page) {
  return st_bitmap_state(st_page_bitmap(&g_arbiter.shm, page), 0);
}

struct seen {
  uint32_t method;
  unsigned moves, patches;
  /* The page number and the target buffer of each move. */
  uint64_t page[MAX_MOVES], buffer[MAX_MOVES];
  bool has_data;
  uint64_t patch_buffer, flush_id;
};

static void see_move(struct seen* s, const struct st_field* f) {
  struct st_decoder d;
  struct st_field part;
  CHECK(s->moves < MAX_MOVES);
  st_decoder_init(&d, f->data, f->size);
  while (st_decoder_next(&d, &part)) {
    if (part.number == 1)
      s->page[s->moves] = part.value;
    if (part.number == 3)
      s->buffer[s->moves] = part.value;
    s->has_data |= part.number == 4;
  }
  s->moves++;
}

static void see_patches(struct seen* s, const struct st_field* f) {
  struct st_decoder d;
  struct st_field part;
  st_decoder_init(&d, f->data, f->size);
  while (st_decoder_next(&d, &part))
    if (part.number == 1)
      s->patch_buffer = part.value;
  s->patches++;
}

static bool see(struct seen* s) {
  struct st_ipc_invoke invoke;
  struct st_decoder d;
  struct st_field f;
  memset(s, 0, sizeof *s);
  if (!next_frame(&invoke))
    return false;
  s->method = invoke.method_id;
  st_decoder_init(&d, invoke.args, invoke.args_size);
  while (s->method == COMMIT && st_decoder_next(&d, &f)) {
    if (f.number == 1)
      see_move(s, &f);
    else if (f.number == 2)
      see_patches(s, &f);
    else
      s->flush_id = f.value;
  }
  return true;
}

static void chunks_wait_until_service_and_buffer_are_bound(void) {
  struct seen s;
  start();
  write_into(FIRST);
  write_into(FIRST);
  CHECK_EQ(state_of(0), ST_CHUNK_COMPLETE);
  CHECK_EQ(state_of(1), ST_CHUNK_COMPLETE);
  connect_service();
  expect_nothing();
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  CHECK(see(&s));
  CHECK_EQ(s.moves, 2);
  CHECK_EQ(s.page[0], 0);
  CHECK_EQ(s.page[1], 1);
  CHECK_EQ(s.buffer[0], 5);
  CHECK_EQ(s.buffer[1], 5);
  /* The writer has ended, so it is not registered at the service. */
  expect_nothing();
  end();
}

static void reservation_may_be_bound_before_the_service(void) {
  struct seen s;
  start();
  write_into(FIRST);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  connect_service();
  CHECK(see(&s));
  CHECK_EQ(s.moves, 1);
  CHECK_EQ(s.buffer[0], 5);
  end();
}

static void chunks_after_the_binding_are_sent_at_once(void) {
  struct seen s;
  start();
  connect_service();
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  write_into(FIRST);
  expect_writer(REGISTER, 1, 5);
  CHECK(see(&s));
  CHECK_EQ(s.moves, 1);
  CHECK_EQ(s.buffer[0], 5);
  expect_writer(UNREGISTER, 1, 0);
  expect_nothing();
  end();
}

static void writers_are_registered_when_their_buffer_is_bound(void) {
  struct st_trace_writer w;
  struct seen s;
  start();
  connect_service();
  CHECK(st_trace_writer_init(&w, &g_arbiter, SECOND, ST_STALL));
  write_one(&w);
  expect_nothing();
  CHECK(st_commit_batch_bind_target(&g_batch, 2, 9));
  expect_writer(REGISTER, 1, 9);
  st_trace_writer_destroy(&w);
  CHECK(see(&s));
  CHECK_EQ(s.buffer[0], 9);
  expect_writer(UNREGISTER, 1, 0);
  end();
}

static void entries_without_a_reservation_do_not_wait(void) {
  struct seen s;
  start();
  connect_service();
  write_into(FIRST);
  write_into(3);
  expect_writer(REGISTER, 2, 3);
  CHECK(see(&s));
  CHECK_EQ(s.moves, 1);
  CHECK_EQ(s.page[0], 1);
  CHECK_EQ(s.buffer[0], 3);
  expect_writer(UNREGISTER, 2, 0);
  st_commit_batch_notify_flush_complete(&g_batch, 4);
  CHECK(see(&s));
  CHECK_EQ(s.moves, 0);
  CHECK_EQ(s.flush_id, 4);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  CHECK(see(&s));
  CHECK_EQ(s.page[0], 0);
  expect_nothing();
  end();
}

static void chunks_of_a_reservation_without_buffer_are_freed_by_the_service(
    void) {
  struct st_trace_writer w;
  struct seen s;
  start();
  CHECK(st_trace_writer_init(&w, &g_arbiter, FIRST, ST_DROP));
  write_one(&w);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 0));
  connect_service();
  expect_nothing(); /* The writer is not registered at the service, either. */
  st_trace_writer_destroy(&w);
  CHECK(see(&s));
  CHECK_EQ(s.method, COMMIT);
  CHECK_EQ(s.moves, 1);
  CHECK_EQ(s.buffer[0], 0);
  CHECK(see(&s));
  CHECK_EQ(s.method, UNREGISTER);
  /* A second binding of the reservation has no effect. */
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  write_into(FIRST);
  CHECK(see(&s));
  CHECK_EQ(s.buffer[0], 0);
  end();
}

static void reservations_are_bound_independently(void) {
  struct seen s;
  start();
  connect_service();
  write_into(FIRST);
  write_into(SECOND);
  CHECK(st_commit_batch_bind_target(&g_batch, 2, 9));
  CHECK(see(&s));
  CHECK_EQ(s.moves, 1);
  CHECK_EQ(s.buffer[0], 9);
  expect_nothing();
  CHECK(!st_commit_batch_bind_target(&g_batch, 0, 9));
  CHECK(!st_commit_batch_bind_target(&g_batch, ST_MAX_RESERVATION + 1, 9));
  end();
}

/* Writes a message that is longer than a chunk.  The message's size is patched
 * when it ends. */
static void write_long(uint32_t target_buffer) {
  struct st_trace_writer w;
  struct st_message nested;
  static const uint8_t bytes[PAGE_SIZE];
  CHECK(st_trace_writer_init(&w, &g_arbiter, target_buffer, ST_DROP));
  st_message_begin_nested(st_trace_writer_begin_packet(&w), &nested, 11);
  st_message_append_bytes(&nested, 1, bytes, sizeof bytes);
  CHECK(st_trace_writer_end_packet(&w));
  st_trace_writer_destroy(&w);
}

static void patches_wait_for_the_binding_of_their_chunks(void) {
  struct seen s;
  unsigned moves = 0, patches = 0;
  start();
  patch(77, 1, false); /* Adds a patch for buffer 3. */
  struct st_patch one = {.chunk_id = 5, .size_field = {0x81, 0x80, 0x80, 0}};
  struct st_chunk_patches of_first = {.writer_id = 8,
                                      .chunk_id = 5,
                                      .target_buffer = FIRST,
                                      .count = 1,
                                      .first = &one};
  st_commit_batch_sink.patch(&g_batch, &of_first);
  connect_service();
  CHECK(see(&s));
  CHECK_EQ(s.patches, 1);
  CHECK_EQ(s.patch_buffer, 3);
  expect_nothing();
  write_long(FIRST);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  while (see(&s)) {
    moves += s.moves;
    patches += s.patches;
    CHECK(!s.patches || s.patch_buffer == 5);
  }
  CHECK_EQ(moves, 2);
  CHECK(patches >= 1);
  end();
}

static void chunks_are_patched_directly_if_the_service_allows_it(void) {
  struct seen s;
  start();
  open_queue();
  st_commit_batch_patch_directly(&g_batch, &g_arbiter.shm);
  st_commit_batch_bind(&g_batch, &g_queue, &kMethods);
  write_long(FIRST);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  CHECK(see(&s));
  CHECK_EQ(s.moves, 2);
  CHECK_EQ(s.patches, 0);
  CHECK_EQ(state_of(0), ST_CHUNK_COMPLETE);
  end();
}

static void service_without_shared_memory_gets_chunks_inside_requests(void) {
  struct st_trace_writer w;
  struct seen s;
  start();
  write_into(FIRST);
  CHECK(st_trace_writer_init(&w, &g_arbiter, FIRST, ST_DROP));
  write_one(&w);
  write_one(&w);
  CHECK(st_commit_batch_emulate(&g_batch, &g_arbiter.shm, true));
  connect_service();
  expect_nothing();
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  CHECK(see(&s));
  CHECK(s.has_data);
  CHECK_EQ(s.buffer[0], 5);
  /* The chunk becomes free at once. */
  CHECK_EQ(st_page_bitmap(&g_arbiter.shm, 0), 0);
  expect_writer(REGISTER, 2, 5);
  st_commit_batch_notify_flush_complete(&g_batch, 1);
  /* The request contains the chunk of the writer that started before emulation
   * was switched on. */
  CHECK(see(&s));
  CHECK(s.has_data);
  st_trace_writer_destroy(&w);
  end();
}

static void emulated_chunks_of_a_reservation_without_buffer_become_free(void) {
  start();
  write_into(FIRST);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 0));
  CHECK_EQ(state_of(0), ST_CHUNK_COMPLETE);
  CHECK(st_commit_batch_emulate(&g_batch, &g_arbiter.shm, false));
  connect_service();
  expect_nothing();
  CHECK_EQ(st_page_bitmap(&g_arbiter.shm, 0), 0);
  end();
}

static void startup_writers_never_stall(void) {
  struct st_trace_writer w;
  start();
  CHECK(st_trace_writer_init(&w, &g_arbiter, FIRST, ST_STALL));
  unsigned written = 0;
  while (write_bytes(&w, 1000))
    CHECK(++written < PAGES * 5);
  CHECK(written > PAGES * 3);
  st_trace_writer_destroy(&w);
  connect_service();
  end();
}

static void batch_without_a_service_frees_its_memory(void) {
  start();
  write_into(FIRST);
  write_long(SECOND);
  st_arbiter_destroy(&g_arbiter);
  /* The leak sanitizer reports chunks that are not freed. */
  st_commit_batch_destroy(&g_batch);
}

enum { THREADS = 4, ROUNDS = 400 };

static void* write_rounds(void* unused) {
  (void)unused;
  for (unsigned i = 0; i < ROUNDS; i++) {
    struct st_trace_writer w;
    CHECK(st_trace_writer_init(&w, &g_arbiter, FIRST, ST_DROP));
    write_bytes(&w, 2);
    st_trace_writer_destroy(&w);
  }
  return NULL;
}

static void threads_may_write_during_the_binding(void) {
  pthread_t threads[THREADS];
  struct seen s;
  unsigned moves = 0;
  start();
  for (unsigned i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, write_rounds, NULL), 0);
  open_queue();
  st_commit_batch_patch_directly(&g_batch, &g_arbiter.shm);
  st_commit_batch_bind(&g_batch, &g_queue, &kMethods);
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  while (see(&s))
    moves += s.moves;
  /* The test's service never frees chunks.  With many writers a page has
   * several chunks. */
  CHECK(moves > 0 && moves <= MAX_MOVES);
  end();
}

static void fork_is_safe_while_threads_write(void) {
  pthread_t threads[THREADS];
  start();
  connect_service();
  CHECK(st_commit_batch_bind_target(&g_batch, 1, 5));
  for (unsigned i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, write_rounds, NULL), 0);
  for (unsigned i = 0; i < 5; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  end();
}

int main(void) {
  RUN(chunks_wait_until_service_and_buffer_are_bound);
  RUN(reservation_may_be_bound_before_the_service);
  RUN(chunks_after_the_binding_are_sent_at_once);
  RUN(writers_are_registered_when_their_buffer_is_bound);
  RUN(entries_without_a_reservation_do_not_wait);
  RUN(chunks_of_a_reservation_without_buffer_are_freed_by_the_service);
  RUN(reservations_are_bound_independently);
  RUN(patches_wait_for_the_binding_of_their_chunks);
  RUN(chunks_are_patched_directly_if_the_service_allows_it);
  RUN(service_without_shared_memory_gets_chunks_inside_requests);
  RUN(emulated_chunks_of_a_reservation_without_buffer_become_free);
  RUN(startup_writers_never_stall);
  RUN(batch_without_a_service_frees_its_memory);
  RUN(threads_may_write_during_the_binding);
  RUN(fork_is_safe_while_threads_write);
  return 0;
}
