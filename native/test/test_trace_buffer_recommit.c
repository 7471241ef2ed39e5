/* Tests of re-commits: chunks that were scraped, have grown, and were moved or
 * evicted meanwhile. */
#include "fake_chunk.h"

enum { PAYLOAD = 512 - 16 };

/* Makes chunk `id` of writer 1 with one packet of 10 bytes for each letter. */
static void grown(uint32_t id, const char* fills) {
  chunk(1, 1, id);
  for (; *fills; fills++)
    add(10, *fills);
  pad_to(PAYLOAD);
}

static void expect_all(struct st_trace_buffer* b, const char* fills) {
  begin_read(b);
  for (; *fills; fills++)
    expect(b, 10, *fills);
  expect_nothing(b);
}

static void recommit_before_a_read_adds_packets(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "a");
  CHECK(scrape(b));
  grown(0, "abc");
  CHECK(scrape(b));
  grown(0, "abcd");
  CHECK(commit(b));
  expect_all(b, "abcd");
  CHECK_EQ(stats_of(b).chunks_rewritten, 2);
  CHECK_EQ(stats_of(b).chunks_written, 1);
  CHECK_EQ(stats_of(b).chunks_read, 1);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
  st_trace_buffer_destroy(b);
}

static void recommit_after_a_read_adds_only_new_packets(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  expect_all(b, "ab");
  CHECK(scrape(b)); /* This commit adds no new packet. */
  expect_all(b, "");
  grown(0, "abc");
  CHECK(scrape(b));
  expect_all(b, "c");
  grown(0, "abcde");
  CHECK(commit(b));
  expect_all(b, "de");
  CHECK(!commit(b));
  expect_all(b, "");
  CHECK(commit_one(b, 1, 1, 10, 'f'));
  expect_all(b, "f");
  CHECK_EQ(stats_of(b).chunks_discarded, 1);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  /* The counters count whole records.  A record that has grown is counted each
   * time it is read to its end. */
  CHECK_EQ(stats_of(b).chunks_written, 3);
  CHECK_EQ(stats_of(b).chunks_read, 4);
  st_trace_buffer_destroy(b);
}

static void commit_without_new_packets_completes_the_chunk(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  expect_all(b, "ab");
  CHECK(commit(b));
  CHECK(commit_one(b, 1, 1, 10, 'c'));
  expect_all(b, "c");
  CHECK_EQ(stats_of(b).chunks_read, 2);
  st_trace_buffer_destroy(b);
}

static void chunk_after_an_incomplete_one_is_not_read(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  CHECK(commit_one(b, 1, 1, 10, 'd'));
  CHECK(commit_one(b, 2, 0, 10, 'z'));
  expect_all(b, "abz");
  expect_all(b, "");
  grown(0, "abc");
  CHECK(commit(b));
  expect_all(b, "cd");
  st_trace_buffer_destroy(b);
}

static void shorter_recommit_is_ignored(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "abc");
  CHECK(scrape(b));
  grown(0, "ab");
  CHECK(!scrape(b));
  CHECK(!commit(b));
  expect_all(b, "abc");
  CHECK(!commit(b));
  grown(0, "abcdef");
  pad_to(67);
  CHECK(commit(b)); /* The new payload is shorter, but has more fragments. */
  expect_all(b, "def");
  st_trace_buffer_destroy(b);
}

static void recommit_that_lacks_a_flag_is_ignored(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(1, "xa");
  flags(FIRST_CONTINUES);
  CHECK(scrape(b));
  grown(1, "xab");
  CHECK(!commit(b));
  begin_read(b);
  expect_loss(b, 10, 'a', ST_LOSS_ORPHAN_CONTINUATION);
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void complete_chunk_cannot_be_changed(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(commit(b));
  grown(0, "xyz");
  CHECK(!commit(b));
  CHECK(!scrape(b));
  expect_all(b, "ab");
  CHECK(!commit(b));
  CHECK_EQ(stats_of(b).chunks_discarded, 1);
  CHECK_EQ(stats_of(b).chunks_rewritten, 0);
  st_trace_buffer_destroy(b);
}

static void recommit_larger_than_its_record_is_refused(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  chunk(1, 1, 0);
  for (int i = 0; i < 100; i++)
    add(10, 'a');
  CHECK(!commit(b));
  CHECK(commit_one(b, 2, 0, 10, 'z'));
  expect_all(b, "abz");
  st_trace_buffer_destroy(b);
}

static void duplicates_of_read_chunks_are_discarded(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t id = 0; id < 5; id++)
    CHECK(commit_one(b, 1, id, 10, 'a'));
  expect_all(b, "aaaaa");
  for (uint32_t id = 0; id < 5; id++)
    CHECK(!commit_one(b, 1, id, 10, 'a'));
  expect_all(b, "");
  CHECK_EQ(stats_of(b).chunks_discarded, 5);
  st_trace_buffer_destroy(b);
}

static void recommitted_chunk_may_end_in_half_a_packet(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "a");
  CHECK(scrape(b));
  expect_all(b, "a");
  chunk(1, 1, 0);
  flags(LAST_CONTINUES);
  add(10, 'a');
  add(30, 'b');
  pad_to(PAYLOAD);
  CHECK(commit(b));
  begin_read(b);
  expect_nothing(b);
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(30, 'b');
  add(10, 'c');
  CHECK(scrape(b));
  begin_read(b);
  expect(b, 60, 'b');
  expect(b, 10, 'c');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  st_trace_buffer_destroy(b);
}

static void chunk_that_was_read_is_relocated_to_the_write_position(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  for (uint32_t i = 0; i < 6; i++)
    CHECK(commit_one(b, 2, i, 478, 'z'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'b');
  for (int i = 0; i < 6; i++)
    expect(b, 478, 'z');
  expect_nothing(b);
  grown(0, "abc");
  CHECK(commit(b));
  CHECK_EQ(stats_of(b).chunks_relocated, 1);
  /* These chunks overwrite the old record of the relocated chunk. */
  for (uint32_t i = 6; i < 9; i++)
    CHECK(commit_one(b, 2, i, 478, 'z'));
  CHECK(commit_one(b, 1, 1, 10, 'd'));
  begin_read(b);
  expect(b, 10, 'c');
  for (int i = 0; i < 3; i++)
    expect(b, 478, 'z');
  expect(b, 10, 'd');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_overwritten, 0);
  st_trace_buffer_destroy(b);
}

static void relocated_chunk_is_read_before_later_chunks(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "a");
  CHECK(scrape(b));
  expect_all(b, "a");
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(10, 'b');
  add(10, 'c');
  CHECK(commit(b));
  expect_all(b, "");
  chunk(1, 1, 0);
  flags(LAST_CONTINUES);
  add(10, 'a');
  add(10, 'b');
  pad_to(PAYLOAD);
  CHECK(commit(b));
  CHECK_EQ(stats_of(b).chunks_relocated, 1);
  begin_read(b);
  expect(b, 20, 'b');
  expect(b, 10, 'c');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  st_trace_buffer_destroy(b);
}

static void chunk_with_unread_packets_is_rewritten_in_place(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  expect_all(b, "ab");
  grown(0, "abc");
  CHECK(scrape(b)); /* The record is incomplete, so it is rewritten in place. */
  grown(0, "abcd");
  /* Packet `c` of the record is unread, so the record is rewritten in place. */
  CHECK(commit(b));
  expect_all(b, "cd");
  CHECK_EQ(stats_of(b).chunks_relocated, 0);
  CHECK_EQ(stats_of(b).chunks_rewritten, 2);
  st_trace_buffer_destroy(b);
}

static void flood(struct st_trace_buffer* b) {
  static uint32_t id;
  for (int i = 0; i < 8; i++)
    CHECK(commit_one(b, 9, id++, 478, 'z'));
  begin_read(b);
  CHECK(st_trace_buffer_read_packet(b, &got));
  for (int i = 0; i < 7; i++)
    expect(b, 478, 'z');
  expect_nothing(b);
}

static void evicted_chunk_can_be_committed_again(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  expect_all(b, "ab");
  flood(b);
  /* The evicted record has no unread data, so it does not count as a loss. */
  CHECK_EQ(stats_of(b).chunks_overwritten, 0);
  grown(0, "ab");
  CHECK(!scrape(b));
  grown(0, "abc");
  CHECK(scrape(b));
  expect_all(b, "c");
  flood(b);
  grown(0, "abcd");
  CHECK(commit(b));
  expect_all(b, "d");
  flood(b);
  CHECK(!commit(b));
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  /* The commits that added no fragments were discarded. */
  CHECK_EQ(stats_of(b).chunks_discarded, 2);
  st_trace_buffer_destroy(b);
}

/* Returns a ring in which the record with packet `c` was overwritten.  The
 * producer's chunk still contains packet `c`. */
static struct st_trace_buffer* partly_evicted(void) {
  struct st_trace_buffer* b = ring(4096);
  grown(0, "ab");
  CHECK(scrape(b));
  expect_all(b, "ab");
  grown(0, "abc");
  CHECK(scrape(b));
  flood(b);
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  CHECK_EQ(stats_of(b).bytes_overwritten, 512);
  return b;
}

static void recommit_of_an_evicted_chunk_adds_only_new_packets(void) {
  struct st_trace_buffer* b = partly_evicted();
  grown(0, "abc");
  CHECK(!scrape(b)); /* This packet was already counted and marked as lost. */
  grown(0, "abcd");
  CHECK(commit(b));
  begin_read(b);
  expect_loss(b, 10, 'd', ST_LOSS_OVERWRITE);
  expect_nothing(b);
  CHECK(commit_one(b, 1, 1, 10, 'f'));
  expect_all(b, "f");
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  st_trace_buffer_destroy(b);
}

static void evicted_packets_are_lost_without_a_recommit(void) {
  struct st_trace_buffer* b = partly_evicted();
  CHECK(commit_one(b, 1, 1, 10, 'f'));
  begin_read(b);
  expect_loss(b, 10, 'f', ST_LOSS_OVERWRITE);
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  st_trace_buffer_destroy(b);
}

static void chunk_that_fills_the_ring_can_be_recommitted(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(10, 'a');
  pad_to(4096 - 16);
  CHECK(scrape(b));
  chunk(1, 1, 0);
  for (int i = 0; i < 370; i++)
    add(10, 'a');
  pad_to(4096 - 16);
  CHECK(commit(b));
  begin_read(b);
  for (int i = 0; i < 370; i++)
    expect(b, 10, 'a');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_overwritten, 0);
  st_trace_buffer_destroy(b);
}

static void recommits_work_over_many_wraps(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t id = 0; id < 100; id++) {
    grown(id, "ab");
    CHECK(scrape(b));
    expect_all(b, "ab");
    grown(id, "abc");
    CHECK(commit(b));
    expect_all(b, "c");
  }
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
  st_trace_buffer_destroy(b);
}

int main(void) {
  RUN(recommit_before_a_read_adds_packets);
  RUN(recommit_after_a_read_adds_only_new_packets);
  RUN(commit_without_new_packets_completes_the_chunk);
  RUN(chunk_after_an_incomplete_one_is_not_read);
  RUN(shorter_recommit_is_ignored);
  RUN(recommit_that_lacks_a_flag_is_ignored);
  RUN(complete_chunk_cannot_be_changed);
  RUN(recommit_larger_than_its_record_is_refused);
  RUN(duplicates_of_read_chunks_are_discarded);
  RUN(recommitted_chunk_may_end_in_half_a_packet);
  RUN(chunk_that_was_read_is_relocated_to_the_write_position);
  RUN(relocated_chunk_is_read_before_later_chunks);
  RUN(chunk_with_unread_packets_is_rewritten_in_place);
  RUN(evicted_chunk_can_be_committed_again);
  RUN(recommit_of_an_evicted_chunk_adds_only_new_packets);
  RUN(evicted_packets_are_lost_without_a_recommit);
  RUN(chunk_that_fills_the_ring_can_be_recommitted);
  RUN(recommits_work_over_many_wraps);
  return 0;
}
