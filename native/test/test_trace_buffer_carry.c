/* Tests of streamed trace buffers: the reader waits for a chunk while other
 * writers continue. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_chunk.h"

enum { SIZE = 1 << 20, QUARTER = SIZE / 4, FLOOD = 10000, WRAPS = 10 };

static int g_eventfd;

static struct st_trace_buffer* streamed(void) {
  struct st_trace_buffer* b = ring(SIZE);
  g_eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  st_trace_buffer_set_watermark(b, g_eventfd, QUARTER);
  return b;
}

static void end(struct st_trace_buffer* b) {
  st_trace_buffer_set_watermark(b, -1, 0);
  close(g_eventfd);
  st_trace_buffer_destroy(b);
}

/* Writer 9 fills the ring several times.  A reader reads a quarter of the ring
 * at a time, like the drain to a file, and gets only writer 9's packets. */
static void flood(struct st_trace_buffer* b) {
  static uint32_t id;
  uint32_t written = 0;
  for (size_t bytes = 0; bytes < (size_t)WRAPS * SIZE; bytes += FLOOD) {
    CHECK(commit_one(b, 9, id++, FLOOD, 'z'));
    if (++written < QUARTER / FLOOD)
      continue;
    begin_read(b);
    for (; written; written--)
      expect(b, FLOOD, 'z');
    expect_nothing(b);
  }
  begin_read(b);
  for (; written; written--)
    expect(b, FLOOD, 'z');
  expect_nothing(b);
}

static void chunk_of_an_idle_writer_may_be_scraped_again(void) {
  struct st_trace_buffer* b = streamed();
  for (int i = 0; i < 3; i++) {
    chunk(1, 1, 0);
    add(10, 'a');
    CHECK(scrape(b));
    begin_read(b);
    if (i == 0)
      expect(b, 10, 'a');
    expect_nothing(b);
    flood(b);
  }
  CHECK_EQ(stats_of(b).chunks_discarded, 0);
  end(b);
}

/* The service scrapes a chunk whose commit is on its way.  The reader is faster
 * than the commit. */
static void complete_chunk_may_be_committed_after_it_was_scraped_and_read(
    void) {
  struct st_trace_buffer* b = streamed();
  for (int i = 0; i < 2; i++) {
    chunk(1, 1, 0);
    add(10, 'a');
    CHECK(commit(b));
    begin_read(b);
    if (i == 0)
      expect(b, 10, 'a');
    expect_nothing(b);
  }
  CHECK_EQ(stats_of(b).chunks_discarded, 0);
  end(b);
}

/* The chunk of a slow writer is scraped when each other writer has filled a
 * chunk.  Its record is the oldest of the ring when the ring wraps. */
static void growth_of_a_slow_writer_is_not_overwritten(void) {
  struct st_trace_buffer* b = streamed();
  enum { STEPS = 2 * SIZE / FLOOD };
  for (int i = 0; i < STEPS; i++) {
    chunk(1, 1, 0);
    for (int k = 0; k <= i; k++)
      add(10, 'a');
    pad_to(4000);
    CHECK(scrape(b));
    CHECK(commit_one(b, 9, (uint32_t)i, FLOOD, 'z'));
    begin_read(b);
    struct st_packet p;
    int own = 0;
    while (st_trace_buffer_read_packet(b, &p))
      own += p.writer_id == 1;
    CHECK_EQ(own, 1);
  }
  CHECK_EQ(stats_of(b).chunks_overwritten, 0);
  CHECK_EQ(stats_of(b).chunks_discarded, 0);
  end(b);
}

static void begin_packet_in_chunk_0(struct st_trace_buffer* b) {
  chunk(1, 1, 0);
  flags(LAST_CONTINUES);
  add(20, 'a');
  add(100, 'b');
  CHECK(commit(b));
  begin_read(b);
  expect(b, 20, 'a');
  expect_nothing(b);
}

static void end_packet_in_chunk_1(struct st_trace_buffer* b) {
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(50, 'b');
  add(30, 'c');
  CHECK(commit(b));
}

static void expect_no_loss(struct st_trace_buffer* b) {
  CHECK_EQ(stats_of(b).chunks_overwritten, 0);
  CHECK_EQ(stats_of(b).bytes_overwritten, 0);
  CHECK_EQ(stats_of(b).sequence_packet_loss, 0);
  CHECK_EQ(st_trace_buffer_unread(b), 0);
}

static void record_with_half_a_packet_is_moved(void) {
  struct st_trace_buffer* b = streamed();
  begin_packet_in_chunk_0(b);
  flood(b);
  CHECK(stats_of(b).chunks_relocated >= WRAPS);
  end_packet_in_chunk_1(b);
  begin_read(b);
  expect(b, 150, 'b');
  expect(b, 30, 'c');
  expect_nothing(b);
  expect_no_loss(b);
  end(b);
}

static void moved_chunk_can_be_patched(void) {
  struct st_trace_buffer* b = streamed();
  chunk(1, 1, 0);
  flags(NEEDS_PATCHING | LAST_CONTINUES);
  add(4, 'a');
  CHECK(commit(b));
  chunk(1, 1, 1); /* This chunk cannot be read before the chunk ahead of it. */
  flags(FIRST_CONTINUES);
  add(2, 'x');
  add(20, 'b');
  CHECK(commit(b));
  flood(b);
  struct st_patch_data patch = {.offset = 1, .data = {'x', 'x', 'x', 'x'}};
  CHECK(st_trace_buffer_patch(b, 1, 1, 0, &patch, 1, false));
  begin_read(b);
  expect(b, 6, 'x');
  expect(b, 20, 'b');
  expect_nothing(b);
  expect_no_loss(b);
  end(b);
}

static void ring_without_a_stream_overwrites_waiting_records(void) {
  struct st_trace_buffer* b = ring(SIZE);
  begin_packet_in_chunk_0(b);
  flood(b);
  CHECK_EQ(stats_of(b).chunks_relocated, 0);
  CHECK_EQ(stats_of(b).chunks_overwritten, 1);
  st_trace_buffer_destroy(b);
}

static void largest_records_are_moved(void) {
  struct st_trace_buffer* b = streamed();
  chunk(1, 1, 0);
  flags(NEEDS_PATCHING | LAST_CONTINUES);
  add(65535 - 16 - 3, 'a');
  CHECK(commit(b));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(1, 'a');
  CHECK(commit(b));
  flood(b);
  CHECK(st_trace_buffer_patch(b, 1, 1, 0, NULL, 0, false));
  begin_read(b);
  expect(b, 65535 - 16 - 2, 'a');
  expect_nothing(b);
  expect_no_loss(b);
  end(b);
}

/* Chunks whose missing data never arrives must not take room from other
 * chunks. */
static void records_that_wait_for_ever_are_overwritten(void) {
  struct st_trace_buffer* b = streamed();
  for (uint32_t id = 0; id < 60; id++) {
    chunk(1, (uint16_t)(id + 10), 0);
    flags(NEEDS_PATCHING | LAST_CONTINUES);
    add(FLOOD, 'a');
    CHECK(commit(b));
  }
  begin_read(b);
  expect_nothing(b);
  flood(b);
  CHECK(stats_of(b).chunks_overwritten >= 60 - SIZE / 8 / FLOOD);
  CHECK(st_trace_buffer_unread(b) <= SIZE / 8);
  end(b);
}

/* Twenty writers write; each packet continues in the writer's next chunk.  Some
 * of the writers write only once while the ring wraps several times. */
enum { WRITERS = 20, CHUNKS = 20000 };

static uint64_t read_all(struct st_trace_buffer* b) {
  uint64_t packets = 0;
  begin_read(b);
  while (st_trace_buffer_read_packet(b, &got)) {
    packets++;
    CHECK_EQ(got.loss, 0);
    for (size_t i = 0; i < got.size; i++)
      CHECK_EQ(got.data[i], (uint8_t)got.writer_id);
  }
  return packets;
}

static void packets_of_many_writers_are_kept_until_they_are_complete(void) {
  struct st_trace_buffer* b = streamed();
  uint32_t ids[WRITERS] = {0}, random = 1;
  uint64_t packets = 0;
  for (int i = 0; i < CHUNKS + WRITERS; i++) {
    random = random * 1664525u + 1013904223u;
    /* A writer with a lower number writes less often.  At the end all writers
     * finish their packets. */
    uint16_t w =
        (uint16_t)(WRITERS - 1 - __builtin_ctz(random >> 12 | 1 << 19));
    bool last = i >= CHUNKS;
    if (last)
      w = (uint16_t)(i - CHUNKS);
    chunk(1, (uint16_t)(w + 1), ids[w]);
    flags((ids[w] ? FIRST_CONTINUES : 0) | (last ? 0 : LAST_CONTINUES));
    add(random >> 8 & 2047, (char)(w + 1));
    add(random >> 4 & 2047, (char)(w + 1));
    ids[w]++;
    CHECK(commit(b));
    if (st_trace_buffer_unread(b) > QUARTER)
      packets += read_all(b);
  }
  packets += read_all(b);
  CHECK(stats_of(b).chunks_relocated > 0);
  CHECK(packets > CHUNKS);
  expect_no_loss(b);
  end(b);
}

int main(void) {
  RUN(chunk_of_an_idle_writer_may_be_scraped_again);
  RUN(complete_chunk_may_be_committed_after_it_was_scraped_and_read);
  RUN(growth_of_a_slow_writer_is_not_overwritten);
  RUN(record_with_half_a_packet_is_moved);
  RUN(moved_chunk_can_be_patched);
  RUN(ring_without_a_stream_overwrites_waiting_records);
  RUN(largest_records_are_moved);
  RUN(records_that_wait_for_ever_are_overwritten);
  RUN(packets_of_many_writers_are_kept_until_they_are_complete);
  return 0;
}
