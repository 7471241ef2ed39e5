#include "commit_batch.h"

#include <sys/wait.h>

#include "commit_service.h"

static void each_chunk_is_sent_at_once_without_batching(void) {
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

static void batch_is_sent_when_it_is_full(void) {
  struct request r;
  open_batch(3 * 4088);
  complete(0, 0, 3);
  complete(1, 1, 3);
  expect_nothing();
  complete(2, 2, 3);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 3);
  /* The batch was sent, so the sum of its chunk sizes starts at 0 again. */
  complete(3, 3, 3);
  expect_nothing();
  close_batch();
}

static void flush_sends_all_batched_entries(void) {
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

static void adding_patches_sends_the_batch(void) {
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

static void many_patches_of_a_chunk_become_several_entries(void) {
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

static void flush_acknowledgement_follows_the_chunks(void) {
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
  CHECK_EQ(r.flush_id, 0); /* A flush is acknowledged only once. */
  close_batch();
}

static void writers_are_registered_after_earlier_chunks(void) {
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

static void writers_are_not_registered_if_the_service_lacks_the_method(void) {
  open_batch(0);
  g_batch.methods.register_trace_writer = 0;
  g_batch.methods.unregister_trace_writer = 0;
  st_commit_batch_sink.register_writer(&g_batch, 5, 3);
  st_commit_batch_sink.unregister_writer(&g_batch, 5);
  expect_nothing();
  close_batch();
}

static void refused_entries_are_sent_later_in_order(void) {
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

static void long_backlog_is_split_into_several_requests(void) {
  enum { CHUNKS = 3000 };
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
    CHECK_EQ(flush_id, 0); /* The acknowledgement of the flush comes last. */
    moves += r.moves;
    flush_id = r.flush_id;
    requests++;
  }
  CHECK_EQ(moves, CHUNKS);
  CHECK_EQ(flush_id, 7);
  CHECK(requests > 1);
  CHECK_EQ(g_batch.pending.lost_commits, 0);
  close_batch();
}

static void memory_is_bounded_if_the_service_never_reads(void) {
  open_batch(UINT32_MAX);
  block_queue();
  /* Large page numbers make the entries longer, so that fewer entries fit into
   * a request. */
  for (uint32_t i = 0; g_batch.pending.lost_commits < 100; i++) {
    CHECK(i < ST_COMMIT_MAX_PENDING / 8);
    complete(UINT32_MAX - i, 13, UINT16_MAX);
    if (i % 20000 == 0) /* Compares all pending moves with the expected ones. */
      st_commit_batch_flush(&g_batch);
  }
  CHECK(g_batch.pending.moves.capacity <= ST_COMMIT_MAX_PENDING);
  close_batch();
}

static void batch_is_cleared_when_the_queue_breaks(void) {
  open_batch(1 << 20);
  complete(1, 1, 3);
  shutdown(g_pair.ours, SHUT_RDWR);
  st_send_queue_push(&g_queue, "x", 1, -1);
  CHECK(g_queue.broken);
  complete(2, 2, 3);
  st_commit_batch_notify_flush_complete(&g_batch, 7);
  CHECK_EQ(g_batch.pending.moves.size, 0);
  CHECK_EQ(g_batch.pending.flush_request_id, 0);
  close_batch();
}

static void destroy_sends_all_batched_entries(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  st_commit_batch_destroy(&g_batch);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
}

static void forked_child_sends_no_commits(void) {
  struct request r;
  open_batch(1 << 20);
  complete(1, 1, 3);
  pid_t pid = fork();
  if (pid == 0) {
    bool good = g_batch.pending.moves.size == 0;
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

enum { THREADS = 4, CHUNKS_EACH = 1000 };

static void* complete_many(void* arg) {
  for (uint32_t i = 0; i < CHUNKS_EACH; i++) {
    uint32_t page = i * THREADS + (uint32_t)(intptr_t)arg;
    complete(page, (uint8_t)(page % 14), 3);
  }
  return NULL;
}

static void concurrent_threads_lose_no_chunk(void) {
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
  RUN(each_chunk_is_sent_at_once_without_batching);
  RUN(batch_is_sent_when_it_is_full);
  RUN(flush_sends_all_batched_entries);
  RUN(adding_patches_sends_the_batch);
  RUN(many_patches_of_a_chunk_become_several_entries);
  RUN(flush_acknowledgement_follows_the_chunks);
  RUN(writers_are_registered_after_earlier_chunks);
  RUN(writers_are_not_registered_if_the_service_lacks_the_method);
  RUN(refused_entries_are_sent_later_in_order);
  RUN(long_backlog_is_split_into_several_requests);
  RUN(memory_is_bounded_if_the_service_never_reads);
  RUN(batch_is_cleared_when_the_queue_breaks);
  RUN(destroy_sends_all_batched_entries);
  RUN(forked_child_sends_no_commits);
  RUN(concurrent_threads_lose_no_chunk);
  return 0;
}
