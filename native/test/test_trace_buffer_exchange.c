/* Tests of the exchange of the contents of two trace buffers. */
#include <pthread.h>
#include <stdatomic.h>

#include "fake_chunk.h"

static void contents_are_exchanged(void) {
  struct st_trace_buffer* a = ring(65536);
  struct st_trace_buffer* b = ring(8192);
  st_trace_buffer_set_producer(a, 1, 1000, 11);
  st_trace_buffer_set_machine(a, 1, 77);
  CHECK(commit_one(a, 1, 0, 20, 'a'));
  CHECK(commit_one(a, 1, 1, 30, 'b'));
  begin_read(a);
  /* The read positions of the two buffers are exchanged, too. */
  expect(a, 20, 'a');
  st_trace_buffer_exchange(a, b);
  CHECK_EQ(st_trace_buffer_size(a), 8192);
  CHECK_EQ(st_trace_buffer_unread(a), 0);
  CHECK(st_trace_buffer_unread(b) > 0);
  CHECK_EQ(stats_of(a).chunks_written, 0);
  CHECK_EQ(stats_of(b).chunks_written, 2);
  begin_read(a);
  expect_nothing(a);
  begin_read(b);
  expect(b, 30, 'b');
  CHECK_EQ(got.uid, 1000);
  CHECK_EQ(got.pid, 11);
  CHECK_EQ(got.machine_id, 77);
  expect_nothing(b);
  /* The sequence continues in the memory of the other buffer, with the same
   * chunk ids. */
  CHECK(commit_one(a, 1, 2, 40, 'c'));
  begin_read(a);
  expect(a, 40, 'c');
  st_trace_buffer_exchange(a, a);
  st_trace_buffer_destroy(a);
  st_trace_buffer_destroy(b);
}

static void full_buffer_accepts_chunks_after_the_exchange(void) {
  struct st_trace_buffer* a = st_trace_buffer_create(4096, ST_DISCARD, -1);
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_DISCARD, -1);
  CHECK(commit_one(a, 1, 0, 3000, 'a'));
  CHECK(!commit_one(a, 1, 1, 3000, 'b'));
  st_trace_buffer_exchange(a, b);
  CHECK(commit_one(a, 1, 2, 3000, 'c'));
  CHECK(!commit_one(b, 1, 3, 10, 'd'));
  st_trace_buffer_destroy(a);
  st_trace_buffer_destroy(b);
}

static _Atomic bool stop;

static void* keep_writing(void* buffer) {
  static uint8_t payload[64] = {20};
  uint32_t id = 0;
  for (; !atomic_load(&stop); id++) {
    struct st_chunk_copy c = {
        .producer_id = 1,
        .writer_id = 1,
        .chunk_id = id,
        .fragments = 1,
        .complete = true,
        .payload = payload,
        .payload_size = sizeof payload,
    };
    CHECK(st_trace_buffer_copy_chunk(buffer, &c));
  }
  return (void*)(uintptr_t)id;
}

static void no_packet_is_lost_by_an_exchange_during_writes(void) {
  struct st_trace_buffer* a = ring(1 << 20);
  struct st_trace_buffer* b = ring(1 << 20);
  pthread_t writer;
  void* written;
  atomic_store(&stop, false);
  CHECK_EQ(pthread_create(&writer, NULL, keep_writing, a), 0);
  for (int i = 0; i < 200; i++)
    st_trace_buffer_exchange(a, b);
  atomic_store(&stop, true);
  pthread_join(writer, &written);
  uint64_t chunks = stats_of(a).chunks_written + stats_of(b).chunks_written;
  CHECK_EQ(chunks, (uintptr_t)written);
  st_trace_buffer_destroy(a);
  st_trace_buffer_destroy(b);
}

int main(void) {
  RUN(contents_are_exchanged);
  RUN(full_buffer_accepts_chunks_after_the_exchange);
  RUN(no_packet_is_lost_by_an_exchange_during_writes);
  return 0;
}
