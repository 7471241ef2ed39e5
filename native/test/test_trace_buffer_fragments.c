/* Packets in several chunks, patches, and what is said when some are lost. */
#include "fake_chunk.h"

/* Writer 1's chunk with one fragment. */
static bool commit_part(struct st_trace_buffer* b, uint32_t id, uint8_t f,
                        size_t size, char fill) {
  chunk(1, 1, id);
  flags(f);
  add(size, fill);
  return commit(b);
}

static const uint8_t kMiddle = FIRST_CONTINUES | LAST_CONTINUES;

static void two_fragments(void) {
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

static void waits_for_the_last_fragment(void) {
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

static void out_of_order(void) {
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

static void fragments_out_of_order(void) {
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

static void empty_chunks_are_transparent(void) {
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
  CHECK_EQ(stats_of(b).chunks_read, 33); /* there is nothing to read in 17 */
  st_trace_buffer_destroy(b);
}

static void an_empty_last_fragment_ends_a_packet(void) {
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

static void long_packets(void) {
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

static void fragments_fill_the_ring_exactly(void) {
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

/* --- loss --- */

static void read_gap(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_one(b, 1, 5, 10, 'a')); /* a first one isn't flagged */
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
  CHECK(!commit_one(b, 1, 10, 10, 'x')); /* its turn has passed */
  CHECK_EQ(stats_of(b).chunks_discarded, 1);
  st_trace_buffer_destroy(b);
}

static void read_gap_where_ids_wrap(void) {
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

static void gaps_are_noticed_though_nothing_is_left(void) {
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

static void old_sequences_are_forgotten(void) {
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

static void overwrites_collapse_in_one_mark(void) {
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

static void orphan_continuation(void) {
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

static void broken_chain(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, LAST_CONTINUES, 10, 'x'));
  CHECK(commit_part(b, 1, 0, 10, 'a'));
  begin_read(b);
  expect_loss(b, 10, 'a', ST_LOSS_BROKEN_CHAIN);
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void reassembly_gap(void) {
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

static void drop_sentinel(void) {
  static const uint8_t sentinel[] = {0xFF, 0xFF, 0xFF, 0x7F, 'x', 'x'};
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(10, 'a');
  add_raw(sentinel, sizeof sentinel, 1);
  add(10, 'x');
  CHECK(commit(b));
  CHECK(commit_part(b, 1, 0, 10, 'b'));
  begin_read(b);
  expect_loss(b, 10, 'a', ST_LOSS_WRITER_ABORT); /* as Perfetto marks it */
  expect(b, 10, 'b');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).trace_writer_packet_loss, 1);
  CHECK_EQ(stats_of(b).abi_violations, 0);
  st_trace_buffer_destroy(b);
}

static void drop_sentinel_in_a_later_fragment(void) {
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

/* --- patches --- */

static bool patch(struct st_trace_buffer* b, uint32_t id, uint32_t offset,
                  const char* text, bool has_more) {
  struct st_patch_data data = {.offset = offset};
  memcpy(data.data, text, 4);
  return st_trace_buffer_patch(b, 1, 1, id, &data, 1, has_more);
}

static void packets_before_one_that_waits_for_patches_are_read(void) {
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

static void a_last_packet_that_ends_here_waits_for_no_patch(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, NEEDS_PATCHING, 12, 'a'));
  begin_read(b);
  expect(b, 12, 'a');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
}

static void patches(void) {
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

static void patches_out_of_bounds(void) {
  struct st_trace_buffer* b = ring(4096);
  CHECK(commit_part(b, 0, NEEDS_PATCHING, 12, 'a')); /* payload 0..12 */
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

static void a_fragment_waits_for_patches(void) {
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

static void a_patch_that_comes_too_late(void) {
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

/* --- malicious chunks --- */

static void sizes_past_the_end(void) {
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

static void more_packets_than_payload(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  add(10, 'a');
  fake.fragments = 65535;
  CHECK(commit(b));
  chunk(1, 1, 1);
  fake.fragments = 1; /* of nothing at all */
  CHECK(commit(b));
  CHECK(commit_one(b, 1, 2, 10, 'b'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'b');
  expect_nothing(b);
  CHECK_EQ(stats_of(b).abi_violations, 2);
  st_trace_buffer_destroy(b);
}

static void flags_that_make_no_sense(void) {
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

/* A patch may change sizes that have been found good. */
static void patched_sizes(void) {
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

static void far_out_of_order(void) {
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
  RUN(two_fragments);
  RUN(waits_for_the_last_fragment);
  RUN(out_of_order);
  RUN(fragments_out_of_order);
  RUN(empty_chunks_are_transparent);
  RUN(an_empty_last_fragment_ends_a_packet);
  RUN(long_packets);
  RUN(fragments_fill_the_ring_exactly);
  RUN(read_gap);
  RUN(read_gap_where_ids_wrap);
  RUN(gaps_are_noticed_though_nothing_is_left);
  RUN(old_sequences_are_forgotten);
  RUN(overwrites_collapse_in_one_mark);
  RUN(orphan_continuation);
  RUN(broken_chain);
  RUN(reassembly_gap);
  RUN(drop_sentinel);
  RUN(drop_sentinel_in_a_later_fragment);
  RUN(packets_before_one_that_waits_for_patches_are_read);
  RUN(a_last_packet_that_ends_here_waits_for_no_patch);
  RUN(patches);
  RUN(patches_out_of_bounds);
  RUN(a_fragment_waits_for_patches);
  RUN(a_patch_that_comes_too_late);
  RUN(sizes_past_the_end);
  RUN(more_packets_than_payload);
  RUN(flags_that_make_no_sense);
  RUN(patched_sizes);
  RUN(far_out_of_order);
  return 0;
}
