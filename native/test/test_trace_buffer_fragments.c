/* Tests of packets in several chunks and of patches, and of the loss marks that
 * appear if chunks or patches are missing. */
#include "fake_chunk.h"

/* Makes a chunk of writer 1 with one fragment. */
static bool commit_part(struct st_trace_buffer* b, uint32_t id, uint8_t f,
                        size_t size, char fill) {
  chunk(1, 1, id);
  flags(f);
  add(size, fill);
  return commit(b);
}

static const uint8_t kMiddle = FIRST_CONTINUES | LAST_CONTINUES;

static void packet_in_two_chunks_is_assembled(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  flags(LAST_CONTINUES);
  add(10, 'a');
  add(20, 'b');
  CHECK(commit(b));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(30, 'b');
  add(40, 'c');
  CHECK(commit(b));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 50, 'b');
  expect(b, 40, 'c');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).readaheads_succeeded, 1);
  CHECK_EQ(stats_of(b).chunks_read, 2);
  st_trace_buffer_destroy(b);
}

static void packet_waits_for_its_last_fragment(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES, 10, 'a'));
  CHECK(commit_part(b, 1, kMiddle, 10, 'a'));
  CHECK(commit_one(b, 2, 0, 5, 'z'));
  begin_read(b);
  expect(b, 5, 'z');
  expect_nothing(b);
  CHECK(st_trace_buffer_unread(b) > 0);
  CHECK(commit_part(b, 2, FIRST_CONTINUES, 10, 'a'));
  begin_read(b);
  expect(b, 30, 'a');
  expect_nothing(b);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
  CHECK_EQ(stats_of(b).readaheads_failed, 1);
  st_trace_buffer_destroy(b);
}

static void chunks_are_read_in_the_order_of_their_ids(void) {
  static const uint32_t firsts[] = {0, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD};
  static const int orders[][4] = {
      {0, 2, 1, 3}, {3, 2, 1, 0}, {0, 3, 2, 1}, {2, 0, 3, 1}, {0, 1, 3, 2}};
  for (size_t f = 0; f < 4; f++) {
    for (size_t o = 0; o < 5; o++) {
      struct st_trace_buffer* b = ring(4096);
      for (int i = 0; i < 4; i++) {
        int k = orders[o][i];
        CHECK(commit_one(b, 1, firsts[f] + (uint32_t)k, 10 + (size_t)k,
                         (char)('a' + k)));
      }
      begin_read(b);
      for (int k = 0; k < 4; k++)
        expect(b, 10 + (size_t)k, (char)('a' + k));
      expect_nothing(b);
      CHECK(stats_of(b).chunks_committed_out_of_order > 0);
      st_trace_buffer_destroy(b);
    }
  }
}

static void fragments_that_arrive_out_of_order_are_assembled(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0xFFFFFFFF, LAST_CONTINUES, 10, 'a'));
  CHECK(commit_part(b, 2, FIRST_CONTINUES, 10, 'a'));
  CHECK(commit_part(b, 1, kMiddle, 10, 'a'));
  CHECK(commit_part(b, 0, kMiddle, 10, 'a'));
  begin_read(b);
  expect(b, 40, 'a');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void empty_chunks_inside_a_packet_are_skipped(void) {
  struct st_trace_buffer* b = ring(8192);
  for (uint32_t id = 0; id < 50; id++) {
    if (id % 3 == 0) {
      chunk(1, 1, id);
      CHECK(commit(b));
    } else {
      uint8_t f = id == 1    ? LAST_CONTINUES
                  : id == 49 ? FIRST_CONTINUES
                             : kMiddle;
      CHECK(commit_part(b, id, f, 10, 'a'));
    }
  }
  begin_read(b);
  expect(b, 330, 'a');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).chunks_read, 33); /* Chunk 17 has no readable packet. */
  st_trace_buffer_destroy(b);
}

static void empty_last_fragment_completes_a_packet(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES, 10, 'a'));
  CHECK(commit_part(b, 1, FIRST_CONTINUES, 0, 'a'));
  CHECK(commit_part(b, 2, 0, 7, 'b'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 7, 'b');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void packets_in_many_chunks_are_assembled(void) {
  struct st_trace_buffer* b = ring(4 << 20);
  uint32_t id = 0xFFFFFF00;
  for (int packet = 0; packet < 3; packet++) {
    CHECK(commit_part(b, id++, LAST_CONTINUES, 4000, (char)('a' + packet)));
    for (int i = 0; i < 300; i++)
      CHECK(commit_part(b, id++, kMiddle, 4000, (char)('a' + packet)));
    CHECK(commit_part(b, id++, FIRST_CONTINUES, 4000, (char)('a' + packet)));
  }
  begin_read(b);
  for (int packet = 0; packet < 3; packet++)
    expect(b, 302 * 4000, (char)('a' + packet));
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void packet_may_fill_the_ring_exactly(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t i = 0; i < 10; i++) {
    CHECK(commit_part(b, 2 * i, LAST_CONTINUES, 2048 - 18, 'a'));
    CHECK(commit_part(b, 2 * i + 1, FIRST_CONTINUES, 2048 - 18, 'a'));
    begin_read(b);
    expect(b, 2 * (2048 - 18), 'a');
    expect_nothing(b);
  }
  CHECK_EQ(stats_of(b).padding_bytes_written, 0);
  st_trace_buffer_destroy(b);
}

static void gap_in_chunk_ids_is_marked(void) {
  struct st_trace_buffer* b = ring(4096);
  /* A gap before the first chunk of a sequence is not marked. */
  CHECK(commit_one(b, 1, 5, 10, 'a'));
  CHECK(commit_one(b, 1, 6, 10, 'b'));
  CHECK(commit_one(b, 1, 8, 10, 'c'));
  CHECK(commit_one(b, 1, 9, 10, 'd'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'b');
  expect_loss(b, 10, 'c', ST_LOSS_READ_GAP);
  expect(b, 10, 'd');
  expect_nothing(b);
  CHECK(commit_one(b, 1, 12, 10, 'e'));
  begin_read(b);
  expect_loss(b, 10, 'e', ST_LOSS_READ_GAP);
  expect_nothing(b);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 2);
  /* Later chunks of this sequence were already read. */
  CHECK(!commit_one(b, 1, 10, 10, 'x'));
  CHECK_EQ(stats_of(b).chunks_discarded, 1);
  st_trace_buffer_destroy(b);
}

static void gap_is_marked_where_chunk_ids_wrap(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_one(b, 1, 0xFFFFFFFF, 10, 'a'));
  CHECK(commit_one(b, 1, 0, 10, 'b'));
  CHECK(commit_one(b, 1, 2, 10, 'c'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'b');
  expect_loss(b, 10, 'c', ST_LOSS_READ_GAP);
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void gap_is_marked_after_all_records_were_read(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_one(b, 1, 0, 10, 'a'));
  begin_read(b);
  expect(b, 10, 'a');
  for (uint32_t i = 0; i < 1000; i++) {
    CHECK(commit_one(b, (uint16_t)(2 + i), 0, 100, 'x'));
    begin_read(b);
    expect(b, 100, 'x');
    expect_nothing(b);
  }
  CHECK(commit_one(b, 1, 1, 10, 'b'));
  CHECK(commit_one(b, 2, 2, 10, 'c'));
  begin_read(b);
  expect(b, 10, 'b');
  expect_loss(b, 10, 'c', ST_LOSS_READ_GAP);
  st_trace_buffer_destroy(b);
}

static void oldest_sequences_without_records_are_dropped(void) {
  struct st_trace_buffer* b = ring(65536);
  for (uint32_t i = 1; i <= 20000; i++) {
    CHECK(commit_one(b, (uint16_t)i, 0, 10, 'x'));
    begin_read(b);
    expect(b, 10, 'x');
  }
  CHECK(commit_one(b, 1, 7, 10, 'a'));
  CHECK(commit_one(b, 19999, 7, 10, 'b'));
  begin_read(b);
  expect(b, 10, 'a');
  expect_loss(b, 10, 'b', ST_LOSS_READ_GAP);
  st_trace_buffer_destroy(b);
}

static void several_overwrites_share_one_mark(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t i = 0; i < 6; i++)
    CHECK(commit_one(b, 1, i, 1000, 'a'));
  CHECK(commit_one(b, 2, 0, 1000, 'z'));
  CHECK_EQ(stats_of(b).chunks_overwritten, 3);
  begin_read(b);
  expect_loss(b, 1000, 'a', ST_LOSS_OVERWRITE);
  expect(b, 1000, 'a');
  expect(b, 1000, 'a');
  expect(b, 1000, 'z');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 1);
  st_trace_buffer_destroy(b);
}

static void fragment_without_its_beginning_is_skipped_and_marked(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 3);
  flags(FIRST_CONTINUES);
  add(10, 'x');
  add(20, 'a');
  CHECK(commit(b));
  begin_read(b);
  expect_loss(b, 20, 'a', ST_LOSS_ORPHAN_CONTINUATION);
  expect_nothing(b);
  CHECK(commit_part(b, 5, kMiddle, 9, 'x'));
  CHECK(commit_part(b, 6, FIRST_CONTINUES, 9, 'x'));
  CHECK(commit_part(b, 7, 0, 9, 'b'));
  begin_read(b);
  expect_loss(b, 9, 'b', ST_LOSS_ORPHAN_CONTINUATION | ST_LOSS_READ_GAP);
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void packet_without_a_continuation_is_dropped_and_marked(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES, 10, 'x'));
  CHECK(commit_part(b, 1, 0, 10, 'a'));
  begin_read(b);
  expect_loss(b, 10, 'a', ST_LOSS_BROKEN_CHAIN);
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void packet_with_a_missing_chunk_is_dropped_and_marked(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES, 10, 'x'));
  CHECK(commit_part(b, 1, kMiddle, 10, 'x'));
  CHECK(commit_part(b, 3, FIRST_CONTINUES, 10, 'x'));
  CHECK(commit_part(b, 4, 0, 10, 'a'));
  begin_read(b);
  expect_loss(
      b, 10, 'a',
      ST_LOSS_REASSEMBLY_GAP | ST_LOSS_ORPHAN_CONTINUATION | ST_LOSS_READ_GAP);
  expect_nothing(b);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
  st_trace_buffer_destroy(b);
}

static void packet_cut_by_the_drop_sentinel_is_marked(void) {
  static const uint8_t sentinel[] = {0xFF, 0xFF, 0xFF, 0x7F, 'x', 'x'};
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(10, 'a');
  add_raw(sentinel, sizeof sentinel, 1);
  add(10, 'x');
  CHECK(commit(b));
  CHECK(commit_part(b, 1, 0, 10, 'b'));
  begin_read(b);
  /* The loss mark is the same as Perfetto's. */
  expect_loss(b, 10, 'a', ST_LOSS_WRITER_ABORT);
  expect(b, 10, 'b');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).trace_writer_packet_loss, 1);
  CHECK_EQ(stats_of(b).abi_violations, 0);
  st_trace_buffer_destroy(b);
}

static void packet_cut_in_a_later_fragment_is_marked(void) {
  static const uint8_t sentinel[] = {0xFF, 0xFF, 0xFF, 0x7F};
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES, 10, 'x'));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add_raw(sentinel, sizeof sentinel, 1);
  CHECK(commit(b));
  begin_read(b);
  expect_nothing(b);
  CHECK(commit_part(b, 2, 0, 10, 'b'));
  begin_read(b);
  expect_loss(b, 10, 'b', ST_LOSS_WRITER_ABORT | ST_LOSS_BROKEN_CHAIN);
  expect_nothing(b);
  CHECK_EQ(stats_of(b).trace_writer_packet_loss, 1);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
  st_trace_buffer_destroy(b);
}

static bool patch(struct st_trace_buffer* b, uint32_t id, uint32_t offset,
                  const char* text, bool has_more) {
  struct st_patch_data data = {.offset = offset};
  memcpy(data.data, text, 4);
  return st_trace_buffer_patch(b, 1, 1, id, &data, 1, has_more);
}

static void packets_before_one_that_needs_patches_are_read(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  flags(LAST_CONTINUES | NEEDS_PATCHING);
  add(10, 'a');
  add(20, 'b');
  add(30, 'c');
  CHECK(commit(b));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 20, 'b');
  expect_nothing(b);
  CHECK(commit_part(b, 1, FIRST_CONTINUES, 30, 'c'));
  begin_read(b);
  expect_nothing(b);
  CHECK(patch(b, 0, 34, "cccc", false));
  begin_read(b);
  expect(b, 60, 'c');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void last_packet_that_ends_in_its_chunk_needs_no_patch(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, NEEDS_PATCHING, 12, 'a'));
  begin_read(b);
  expect(b, 12, 'a');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void patches_are_written_into_the_record(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, NEEDS_PATCHING | LAST_CONTINUES, 12, 'a'));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(0, 'a');
  add(5, 'b');
  CHECK(commit(b));
  begin_read(b);
  expect_nothing(b);
  CHECK(patch(b, 0, 1, "1234", true));
  begin_read(b);
  expect_nothing(b);
  CHECK(patch(b, 0, 9, "5678", false));
  begin_read(b);
  CHECK(st_trace_buffer_read_packet(b, &got));
  CHECK_EQ(got.size, 12);
  CHECK(!memcmp(got.data, "1234aaaa5678", 12));
  expect(b, 5, 'b');
  CHECK_EQ(stats_of(b).patches_succeeded, 2);
  CHECK_EQ(stats_of(b).patches_failed, 0);
  st_trace_buffer_destroy(b);
}

static void patches_out_of_bounds_are_refused(void) {
  struct st_trace_buffer* b = ring(4096);
  /* The payload of the chunk has the offsets 0 to 12. */
  CHECK(commit_part(b, 0, NEEDS_PATCHING, 12, 'a'));
  const uint32_t bad[] = {10,    11,         13,         4096,
                          65535, 0x7FFFFFFF, UINT32_MAX, UINT32_MAX - 3};
  for (size_t i = 0; i < 8; i++)
    CHECK(!patch(b, 0, bad[i], "1234", false));
  CHECK_EQ(stats_of(b).patches_failed, 8);
  CHECK(!patch(b, 1, 0, "1234", false));
  CHECK(!st_trace_buffer_patch(b, 1, 2, 0, NULL, 0, false));
  CHECK(!st_trace_buffer_patch(b, 2, 1, 0, NULL, 0, false));
  CHECK_EQ(stats_of(b).patches_failed, 11);
  CHECK(patch(b, 0, 9, "9999", false));
  begin_read(b);
  CHECK(st_trace_buffer_read_packet(b, &got));
  CHECK(!memcmp(got.data, "aaaaaaaa9999", 12));
  st_trace_buffer_destroy(b);
}

static void packet_waits_for_the_patches_of_its_fragment(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES | NEEDS_PATCHING, 8, 'a'));
  CHECK(commit_part(b, 1, kMiddle | NEEDS_PATCHING, 8, 'a'));
  CHECK(commit_part(b, 2, FIRST_CONTINUES, 8, 'a'));
  begin_read(b);
  expect_nothing(b);
  CHECK(patch(b, 0, 1, "aaaa", false));
  begin_read(b);
  expect_nothing(b);
  CHECK(patch(b, 1, 1, "aaaa", false));
  begin_read(b);
  expect(b, 24, 'a');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void late_patch_is_counted_as_failed(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, NEEDS_PATCHING, 1000, 'a'));
  for (uint32_t i = 0; i < 4; i++)
    CHECK(commit_one(b, 2, i, 1000, 'z'));
  CHECK(!patch(b, 0, 1, "1234", false));
  CHECK_EQ(stats_of(b).patches_failed, 1);
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  CHECK(commit_part(b, 1, 0, 10, 'b'));
  begin_read(b);
  for (int i = 0; i < 3; i++) {
    CHECK(st_trace_buffer_read_packet(b, &got));
    CHECK_EQ(got.data[0], 'z');
  }
  expect_loss(b, 10, 'b', ST_LOSS_OVERWRITE);
  st_trace_buffer_destroy(b);
}

static void fragment_sizes_beyond_the_chunk_are_violations(void) {
  static const uint8_t bad[][10] = {
      {0x7F},
      {0xFF, 0xFF, 0x03},
      {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01},
      {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
      {0x80},
  };
  static const size_t sizes[] = {1, 3, 10, 10, 1};
  for (size_t i = 0; i < 5; i++) {
    struct st_trace_buffer* b = ring(4096);
    chunk(1, 1, 0);
    add(10, 'a');
    add_raw(bad[i], sizes[i], 1);
    CHECK(commit(b));
    CHECK(commit_one(b, 1, 1, 10, 'b'));
    CHECK(commit_one(b, 2, 0, 10, 'c'));
    begin_read(b);
    expect(b, 10, 'a');
    expect(b, 10, 'b');
    expect(b, 10, 'c');
    expect_nothing(b);
    CHECK_EQ(stats_of(b).abi_violations, 1);
    st_trace_buffer_destroy(b);
  }
}

static void packet_count_beyond_the_payload_is_a_violation(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(10, 'a');
  fake.fragments = 65535;
  CHECK(commit(b));
  chunk(1, 1, 1);
  /* The header counts one fragment, but the payload is empty. */
  fake.fragments = 1;
  CHECK(commit(b));
  CHECK(commit_one(b, 1, 2, 10, 'b'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'b');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).abi_violations, 2);
  st_trace_buffer_destroy(b);
}

static void every_combination_of_flags_gives_whole_packets(void) {
  for (unsigned f = 0; f < 256; f++) {
    for (uint16_t n = 0; n < 3; n++) {
      struct st_trace_buffer* b = ring(4096);
      for (uint32_t id = 0; id < 3; id++) {
        chunk(1, 1, id);
        flags((uint8_t)f);
        for (uint16_t i = 0; i < n; i++)
          add(10, 'a');
        if (id == 1)
          scrape(b);
        else
          commit(b);
        begin_read(b);
        while (st_trace_buffer_read_packet(b, &got))
          CHECK(got.size % 10 == 0);
      }
      st_trace_buffer_destroy(b);
    }
  }
}

/* A patch may change sizes that were valid before. */
static void sizes_changed_by_patches_are_checked_again(void) {
  struct st_trace_buffer* b = ring(4096);
  for (uint32_t id = 0; id < 2; id++) {
    chunk(1, 1, id);
    flags(NEEDS_PATCHING | (id ? FIRST_CONTINUES : LAST_CONTINUES));
    add(10, 'a');
    add(10, 'b');
    CHECK(commit(b));
  }
  CHECK(patch(b, 0, 0, "\x7F\x7F\x7F\x7F", false));
  CHECK(patch(b, 1, 0, "\x7F\x7F\x7F\x7F", false));
  CHECK(commit_one(b, 1, 2, 10, 'c'));
  begin_read(b);
  expect_loss(b, 10, 'c', ST_LOSS_CHUNK_CORRUPTED);
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void chunk_that_is_far_too_late_is_discarded(void) {
  struct st_trace_buffer* b = ring(1 << 20);
  CHECK(commit_one(b, 1, 0, 10, 'a'));
  for (uint32_t i = 10000; i < 20000; i++)
    CHECK(commit_one(b, 1, i, 3, 'b'));
  CHECK(!commit_one(b, 1, 5, 10, 'c'));
  CHECK_EQ(stats_of(b).chunks_discarded, 1);
  begin_read(b);
  expect(b, 10, 'a');
  expect_loss(b, 3, 'b', ST_LOSS_READ_GAP);
  for (int i = 1; i < 10000; i++)
    expect(b, 3, 'b');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

int main(void) {
  RUN(packet_in_two_chunks_is_assembled);
  RUN(packet_waits_for_its_last_fragment);
  RUN(chunks_are_read_in_the_order_of_their_ids);
  RUN(fragments_that_arrive_out_of_order_are_assembled);
  RUN(empty_chunks_inside_a_packet_are_skipped);
  RUN(empty_last_fragment_completes_a_packet);
  RUN(packets_in_many_chunks_are_assembled);
  RUN(packet_may_fill_the_ring_exactly);
  RUN(gap_in_chunk_ids_is_marked);
  RUN(gap_is_marked_where_chunk_ids_wrap);
  RUN(gap_is_marked_after_all_records_were_read);
  RUN(oldest_sequences_without_records_are_dropped);
  RUN(several_overwrites_share_one_mark);
  RUN(fragment_without_its_beginning_is_skipped_and_marked);
  RUN(packet_without_a_continuation_is_dropped_and_marked);
  RUN(packet_with_a_missing_chunk_is_dropped_and_marked);
  RUN(packet_cut_by_the_drop_sentinel_is_marked);
  RUN(packet_cut_in_a_later_fragment_is_marked);
  RUN(packets_before_one_that_needs_patches_are_read);
  RUN(last_packet_that_ends_in_its_chunk_needs_no_patch);
  RUN(patches_are_written_into_the_record);
  RUN(patches_out_of_bounds_are_refused);
  RUN(packet_waits_for_the_patches_of_its_fragment);
  RUN(late_patch_is_counted_as_failed);
  RUN(fragment_sizes_beyond_the_chunk_are_violations);
  RUN(packet_count_beyond_the_payload_is_a_violation);
  RUN(every_combination_of_flags_gives_whole_packets);
  RUN(sizes_changed_by_patches_are_checked_again);
  RUN(chunk_that_is_far_too_late_is_discarded);
  return 0;
}
