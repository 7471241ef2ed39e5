/* Tests of trace buffers: wrapping, padding, policies, order of reading. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_chunk.h"

enum { HEADER = 16 };

/* Commits a record of exactly `record` bytes with one packet. */
static bool commit_record(struct st_trace_buffer* b, uint16_t writer,
                          uint32_t id, size_t record, char fill) {
  size_t payload = record - HEADER;
  return commit_one(b, writer, id, payload - (payload > 128 ? 2 : 1), fill);
}

static void expect_record(struct st_trace_buffer* b, size_t record, char fill) {
  size_t payload = record - HEADER;
  expect_lossy(b, payload - (payload > 128 ? 2 : 1), fill);
}

static void empty_buffer_has_no_packets(void) {
  struct st_trace_buffer* b = ring(5000);
  CHECK_EQ(st_trace_buffer_size(b), 8192);
  begin_read(b);
  expect_nothing(b);
  CHECK_EQ(stats_of(b).bytes_written, 0);
  st_trace_buffer_destroy(b);
  CHECK(!st_trace_buffer_create(0, ST_RING, -1));
}

static void each_chunk_can_be_read_after_its_commit(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t i = 0; i < 1000; i++) {
    CHECK(commit_one(b, 1, i, 42 + i % 200, (char)i));
    begin_read(b);
    expect(b, 42 + i % 200, (char)i);
    expect_nothing(b);
  }
  struct st_buffer_stats s = stats_of(b);
  CHECK_EQ(s.chunks_written, 1000);
  CHECK_EQ(s.chunks_read, 1000);
  CHECK_EQ(s.bytes_read, s.bytes_written);
  CHECK_EQ(s.chunks_overwritten, 0);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
  st_trace_buffer_destroy(b);
}

static void all_packets_of_a_chunk_are_read(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  for (int i = 0; i < 20; i++)
    add((size_t)(1 + 7 * i), (char)('a' + i));
  CHECK(commit(b));
  begin_read(b);
  for (int i = 0; i < 20; i++)
    expect(b, (size_t)(1 + 7 * i), (char)('a' + i));
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void packets_are_read_in_buffer_order(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint16_t w = 9; w > 0; w--)
    CHECK(commit_one(b, w, 0, 30, (char)('a' + w)));
  begin_read(b);
  for (uint16_t w = 9; w > 0; w--)
    expect(b, 30, (char)('a' + w));
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void full_ring_wraps_without_padding(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_record(b, 1, 0, 1024, 'a'));
  CHECK(commit_record(b, 1, 1, 1024, 'b'));
  CHECK(commit_record(b, 1, 2, 1024, 'c'));
  CHECK(commit_record(b, 1, 3, 1024, 'd'));
  CHECK_EQ(stats_of(b).write_wrap_count, 0);
  CHECK(commit_record(b, 1, 4, 1024, 'e'));
  CHECK_EQ(stats_of(b).write_wrap_count, 1);
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  CHECK_EQ(stats_of(b).bytes_overwritten, 1024);
  CHECK_EQ(stats_of(b).padding_bytes_written, 0);
  begin_read(b);
  expect_record(b, 1024, 'b');
  CHECK_EQ(got.loss, ST_LOSS_PRESENT | ST_LOSS_OVERWRITE);
  expect_record(b, 1024, 'c');
  CHECK_EQ(got.loss, 0);
  expect_record(b, 1024, 'd');
  expect_record(b, 1024, 'e');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void end_of_the_ring_is_padded(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_record(b, 1, 0, 128, 'a'));
  CHECK(commit_record(b, 2, 0, 512, 'b'));
  CHECK(commit_record(b, 3, 0, 4096 - 640 - 64, 'c'));
  /* The ring has only 64 bytes left, so the record is written at its start. */
  CHECK(commit_record(b, 4, 0, 256, 'd'));
  struct st_buffer_stats s = stats_of(b);
  /* The padding is the rest of record b, which was overwritten. */
  CHECK_EQ(s.padding_bytes_written, 128 + 512 - 256);
  CHECK_EQ(s.write_wrap_count, 1);
  CHECK_EQ(s.chunks_overwritten, 2);
  begin_read(b);
  expect_record(b, 4096 - 640 - 64, 'c');
  expect_record(b, 256, 'd');
  expect_nothing(b);
  CHECK(commit_record(b, 5, 0, 4096 - 256, 'e'));
  CHECK_EQ(stats_of(b).padding_bytes_cleared, 384 + 4096 - 640 - 64);
  st_trace_buffer_destroy(b);
}

static void padding_may_be_16_bytes(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_record(b, 1, 0, 2048, 'a'));
  CHECK(commit_record(b, 1, 1, 2048 - 16, 'b'));
  CHECK(commit_record(b, 1, 2, 128, 'c'));
  CHECK_EQ(stats_of(b).padding_bytes_written, 2048 - 128);
  begin_read(b);
  expect_record(b, 2048 - 16, 'b');
  expect_record(b, 128, 'c');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void record_sizes_are_rounded_up(void) {
  struct st_trace_buffer* b = ring(4096);
  uint32_t id = 0;
  for (size_t size = 1; size < 400; size++) {
    CHECK(commit_one(b, 1, id++, size, 'x'));
    CHECK(commit_one(b, 1, id++, size + 300, 'y'));
    begin_read(b);
    expect(b, size, 'x');
    expect(b, size + 300, 'y');
    expect_nothing(b);
  }
  CHECK_EQ(stats_of(b).bytes_written % 16, 0);
  st_trace_buffer_destroy(b);
}

static void empty_packets_are_skipped(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(0, 0);
  add(10, 'a');
  add(0, 0);
  add(0, 0);
  add(11, 'b');
  add(0, 0);
  CHECK(commit(b));
  chunk(1, 1, 1);
  add(0, 0);
  CHECK(commit(b));
  CHECK(commit_one(b, 1, 2, 12, 'c'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 11, 'b');
  expect(b, 12, 'c');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).abi_violations, 0);
  st_trace_buffer_destroy(b);
}

static void random_chunks_are_read_in_order(void) {
  struct st_trace_buffer* b = ring(1 << 20);
  uint32_t ids[8] = {0};
  srand(7);
  for (int i = 0; i < 500; i++) {
    uint16_t w = (uint16_t)(1 + rand() % 7);
    CHECK(
        commit_one(b, w, ids[w]++, 1 + (size_t)(rand() % 2000), (char)(w + i)));
  }
  srand(7);
  begin_read(b);
  for (int i = 0; i < 500; i++) {
    uint16_t w = (uint16_t)(1 + rand() % 7);
    expect(b, 1 + (size_t)(rand() % 2000), (char)(w + i));
    CHECK_EQ(got.writer_id, w);
  }
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void no_loss_is_marked_if_the_reader_keeps_up(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t i = 0; i < 300; i++) {
    CHECK(commit_record(b, 1, i, 512, 'a'));
    if (i % 4 != 3)
      continue;
    begin_read(b);
    for (int k = 0; k < 4; k++) {
      expect_record(b, 512, 'a');
      CHECK_EQ(got.loss, 0);
    }
    expect_nothing(b);
  }
  CHECK_EQ(stats_of(b).chunks_overwritten, 0);
  CHECK_EQ(stats_of(b).bytes_overwritten, 0);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  st_trace_buffer_destroy(b);
}

static void partly_read_record_is_overwritten_as_a_whole(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  flags(LAST_CONTINUES);
  add(100, 'a');
  add(50, 'b');
  CHECK(commit(b));
  begin_read(b);
  expect(b, 100, 'a');
  expect_nothing(b);
  CHECK(commit_record(b, 2, 0, 4096, 'z'));
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  CHECK_EQ(stats_of(b).bytes_overwritten, 176);
  st_trace_buffer_destroy(b);
}

static void discard_buffer_refuses_chunks_after_it_is_full(void) {
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_DISCARD, -1);
  CHECK(commit_record(b, 1, 0, 2048, 'a'));
  CHECK(commit_record(b, 1, 1, 1024, 'b'));
  begin_read(b);
  expect_record(b, 2048, 'a');
  expect_record(b, 1024, 'b');
  expect_nothing(b);
  /* The buffer refuses the record, even though all records were read. */
  CHECK(!commit_record(b, 1, 2, 2048, 'c'));
  /* The buffer refuses all further records. */
  CHECK(!commit_record(b, 1, 3, 32, 'd'));
  CHECK(!commit_record(b, 2, 0, 32, 'e'));
  begin_read(b);
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_discarded, 3);
  CHECK_EQ(stats_of(b).write_wrap_count, 0);
  st_trace_buffer_destroy(b);
}

static void discard_buffer_can_be_filled_exactly(void) {
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_DISCARD, -1);
  CHECK(commit_record(b, 1, 0, 2048, 'a'));
  CHECK(commit_record(b, 1, 1, 2048, 'b'));
  CHECK(!commit_record(b, 1, 2, 32, 'c'));
  begin_read(b);
  expect_record(b, 2048, 'a');
  expect_record(b, 2048, 'b');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void discard_buffer_never_returns_half_a_packet(void) {
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_DISCARD, -1);
  chunk(1, 1, 0);
  flags(LAST_CONTINUES);
  add(10, 'a');
  add(3900, 'b');
  CHECK(commit(b));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(500, 'b');
  CHECK(!commit(b));
  begin_read(b);
  expect(b, 10, 'a');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void discard_buffer_rewrites_recommitted_chunks_in_place(void) {
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_DISCARD, -1);
  chunk(1, 1, 0);
  add(10, 'a');
  pad_to(4096 - HEADER);
  CHECK(scrape(b));
  begin_read(b);
  expect(b, 10, 'a');
  expect_nothing(b);
  chunk(1, 1, 0);
  add(10, 'a');
  add(20, 'b');
  pad_to(4096 - HEADER);
  CHECK(commit(b));
  begin_read(b);
  expect(b, 20, 'b');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_relocated, 0);
  st_trace_buffer_destroy(b);
}

static void chunk_larger_than_the_buffer_is_refused(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(10, 'a');
  pad_to(4096 - HEADER + 1);
  /* A scraped chunk needs room in the buffer for its full size. */
  CHECK(!scrape(b));
  pad_to(65536);
  CHECK(!commit(b));
  CHECK_EQ(stats_of(b).abi_violations, 2);
  pad_to(4096 - HEADER);
  CHECK(commit(b));
  begin_read(b);
  expect(b, 10, 'a');
  st_trace_buffer_destroy(b);
}

static void largest_chunk_is_stored(void) {
  struct st_trace_buffer* b = ring(1 << 18);
  for (uint32_t i = 0; i < 50; i++) {
    chunk(1, 1, i);
    add(60000, 'a');
    pad_to(65535 - HEADER);
    CHECK(i % 2 ? commit(b) : scrape(b));
    begin_read(b);
    expect(b, 60000, 'a');
    if (i % 2 == 0) {
      CHECK(commit(b));
      begin_read(b);
    }
    expect_nothing(b);
  }
  st_trace_buffer_destroy(b);
}

static void packets_have_the_identity_of_their_producer(void) {
  struct st_trace_buffer* b = ring(4096);
  st_trace_buffer_set_producer(b, 1, 1000, 11);
  st_trace_buffer_set_producer(b, 65535, 2000, -1);
  CHECK(commit_one(b, 4, 0, 5, 'a'));
  begin_read(b);
  expect(b, 5, 'a');
  CHECK_EQ(got.producer_id, 1);
  CHECK_EQ(got.writer_id, 4);
  CHECK_EQ(got.uid, 1000);
  CHECK_EQ(got.pid, 11);
  st_trace_buffer_destroy(b);
}

static void read_pass_ends_while_chunks_arrive(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_one(b, 1, 0, 5, 'a'));
  begin_read(b);
  expect(b, 5, 'a');
  CHECK(commit_one(b, 1, 1, 5, 'b'));
  expect_nothing(b);
  begin_read(b);
  expect(b, 5, 'b');
  st_trace_buffer_destroy(b);
}

static void new_pass_returns_packets_that_were_copied_before(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(5, 'a');
  add(6, 'b');
  CHECK(commit(b));
  begin_read(b);
  expect(b, 5, 'a');
  begin_read(b);
  expect(b, 6, 'b');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void many_small_records_are_read_in_order(void) {
  struct st_trace_buffer* b = ring(1 << 16);
  for (uint32_t i = 0; i < 100000; i++)
    CHECK(commit_one(b, 1, i, 3, 'a'));
  begin_read(b);
  expect_loss(b, 3, 'a', ST_LOSS_OVERWRITE);
  for (int i = 1; i < (1 << 16) / 32; i++)
    expect(b, 3, 'a');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_overwritten, 100000 - (1 << 16) / 32);
  st_trace_buffer_destroy(b);
}

/* The size of the payload of a chunk with a packet of 60000 bytes. */
enum { LARGE_RECORD = 60032 };

static void ring_larger_than_the_caches_has_its_newest_packets(void) {
  enum { SIZE = 20 << 20, CHUNKS = 3 * SIZE / LARGE_RECORD };
  struct st_trace_buffer* b = ring(SIZE);
  for (uint32_t id = 0; id < CHUNKS; id++)
    CHECK(commit_one(b, 1, id, 60000, (char)('a' + id % 26)));
  begin_read(b);
  uint32_t id = CHUNKS - SIZE / LARGE_RECORD;
  expect_loss(b, 60000, (char)('a' + id % 26), ST_LOSS_OVERWRITE);
  while (++id < CHUNKS)
    expect(b, 60000, (char)('a' + id % 26));
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void buffer_far_above_its_watermark_is_congested(void) {
  struct st_trace_buffer* b = st_trace_buffer_create(65536, ST_RING, -1);
  for (uint32_t id = 0; id < 13; id++)
    CHECK(commit_one(b, 1, id, 4000, 'a'));
  CHECK(!st_trace_buffer_congested(b)); /* The buffer has no watermark. */
  int fd = eventfd(0, EFD_NONBLOCK);
  st_trace_buffer_set_watermark(b, fd, 16384);
  CHECK(st_trace_buffer_congested(b));
  struct st_packet packet;
  st_trace_buffer_begin_read(b);
  while (st_trace_buffer_read_packet(b, &packet)) {
  }
  CHECK(!st_trace_buffer_congested(b));
  st_trace_buffer_destroy(b);
  close(fd);
}

int main(void) {
  RUN(empty_buffer_has_no_packets);
  RUN(each_chunk_can_be_read_after_its_commit);
  RUN(all_packets_of_a_chunk_are_read);
  RUN(packets_are_read_in_buffer_order);
  RUN(full_ring_wraps_without_padding);
  RUN(end_of_the_ring_is_padded);
  RUN(padding_may_be_16_bytes);
  RUN(record_sizes_are_rounded_up);
  RUN(empty_packets_are_skipped);
  RUN(random_chunks_are_read_in_order);
  RUN(no_loss_is_marked_if_the_reader_keeps_up);
  RUN(partly_read_record_is_overwritten_as_a_whole);
  RUN(discard_buffer_refuses_chunks_after_it_is_full);
  RUN(discard_buffer_can_be_filled_exactly);
  RUN(discard_buffer_never_returns_half_a_packet);
  RUN(discard_buffer_rewrites_recommitted_chunks_in_place);
  RUN(chunk_larger_than_the_buffer_is_refused);
  RUN(largest_chunk_is_stored);
  RUN(packets_have_the_identity_of_their_producer);
  RUN(read_pass_ends_while_chunks_arrive);
  RUN(new_pass_returns_packets_that_were_copied_before);
  RUN(many_small_records_are_read_in_order);
  RUN(ring_larger_than_the_caches_has_its_newest_packets);
  RUN(buffer_far_above_its_watermark_is_congested);
  return 0;
}
