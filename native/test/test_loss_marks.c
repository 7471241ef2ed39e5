/* Tests of loss marks: losses of writers that end without another packet are
 * marked. */
#include "core/loss_marks.h"

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "chunk_reader.h"
#include "core/trace_writer.h"

enum { PAGE = 4096, PAGES = 4, BUFFER = 7, OTHER_BUFFER = 8 };
static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[PAGES * PAGE];
static struct chunk_reader reader;
static struct st_arbiter arbiter;
static unsigned sleeps;

static void fake_sleep(uint32_t us) {
  (void)us;
  sleeps++;
}

static void start(void) {
  struct st_shm shm;
  memset(memory, 0, sizeof memory);
  CHECK(st_shm_init(&shm, memory, sizeof memory, PAGE));
  reader_init(&reader, &shm);
  CHECK(st_arbiter_init(&arbiter, &shm, &kReaderSink, &reader));
  arbiter.wait_hooks.sleep_us = fake_sleep;
  sleeps = 0;
}

static void end(void) {
  st_arbiter_destroy(&arbiter);
  reader_destroy(&reader);
}

static void take_all_chunks(void) {
  arbiter.live_writers = 0; /* Without live writers each page is one chunk. */
  while (st_arbiter_get_chunk(&arbiter, 99, 0, 0, ST_DROP).size)
    continue;
}

/* Starts a writer, writes one packet, and ends the writer. */
static bool short_life(uint16_t buffer) {
  struct st_trace_writer w;
  struct st_iovec piece = {"\x08\x01", 2};
  CHECK(st_trace_writer_init(&w, &arbiter, buffer, ST_DROP));
  bool written = st_trace_writer_append(&w, &piece, 1);
  st_trace_writer_destroy(&w);
  return written;
}

static struct { unsigned firsts, marks; } got;

static void collect(void* context, const uint8_t* packet, size_t size) {
  (void)context;
  if (size == 3)
    got.firsts += memcmp(packet, "\xB8\x05\x01", 3) == 0;
  else
    got.marks += size > 4 && memcmp(packet, "\xD0\x02\x81\x02\x40", 5) == 0;
}

static void read_marks(uint16_t writer_id) {
  got.firsts = got.marks = 0;
  CHECK_EQ(reader_packets(&reader, writer_id, collect, NULL), 0);
}

static void test_each_ended_writer_with_a_loss_is_marked(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  for (int i = 0; i < 3; i++)
    CHECK(!short_life(BUFFER));
  st_loss_marks_close(&arbiter, BUFFER);
  CHECK_EQ(reader.count, 1);
  CHECK_EQ(reader.chunks[0].target_buffer, BUFFER);
  read_marks(1);
  CHECK_EQ(got.firsts, 1);
  CHECK_EQ(got.marks, 3);
  CHECK_EQ(reader.registered, reader.unregistered);
  end();
}

static void test_mark_can_be_scraped_at_once(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  struct st_chunk chunk;
  CHECK(st_chunk_at(&arbiter.shm, 0, ST_PAGE_DIV1, 0, &chunk));
  struct st_chunk_header* header = st_chunk_header(&chunk);
  /* The first packet of the chunk is not finished yet. */
  CHECK_EQ(atomic_load(&header->packets), 1);
  take_all_chunks();
  CHECK(!short_life(BUFFER));
  CHECK_EQ(atomic_load(&header->packets), 3);
  end();
}

static void test_no_mark_is_written_without_a_loss(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  CHECK(short_life(BUFFER));
  st_loss_marks_close(&arbiter, BUFFER);
  read_marks(1);
  CHECK_EQ(got.firsts + got.marks, 0);
  end();
}

static void test_writer_that_marked_its_own_loss_is_not_marked_again(void) {
  start();
  struct st_trace_writer w;
  struct st_iovec piece = {"\x08\x01", 2};
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  CHECK(st_trace_writer_init(&w, &arbiter, BUFFER, ST_DROP));
  take_all_chunks();
  CHECK(!st_trace_writer_append(&w, &piece, 1));
  struct st_chunk chunk;
  CHECK(st_chunk_at(&arbiter.shm, 1, ST_PAGE_DIV1, 0, &chunk));
  st_arbiter_return_chunk(&arbiter, &chunk, BUFFER);
  CHECK(reader_free_one(&reader));
  /* The packet that the writer appends carries the loss mark itself. */
  CHECK(st_trace_writer_append(&w, &piece, 1));
  st_trace_writer_destroy(&w);
  st_loss_marks_close(&arbiter, BUFFER);
  read_marks(1);
  CHECK_EQ(got.marks, 0);
  end();
}

/* The reserved chunk and the shared memory are full.  So the losses are not
 * marked yet, and share one mark later. */
static void test_losses_that_cannot_be_marked_share_a_later_mark(void) {
  enum { DEAD = 4000 };
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  for (int i = 0; i < DEAD; i++)
    CHECK(!short_life(BUFFER));
  /* The reserved chunk of the loss marks was full. */
  CHECK_EQ(reader.count, 1);
  read_marks(1);
  unsigned before = got.marks;
  CHECK(before > 100 && before < DEAD);
  CHECK(reader_free_one(&reader));
  st_loss_marks_close(&arbiter, BUFFER);
  read_marks(1);
  CHECK_EQ(got.marks, before + 1);
  end();
}

static void test_losses_are_marked_in_their_own_buffer(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  CHECK(st_loss_marks_open(&arbiter, OTHER_BUFFER));
  CHECK(st_loss_marks_open(&arbiter, OTHER_BUFFER));
  take_all_chunks();
  CHECK(!short_life(OTHER_BUFFER));
  st_loss_marks_close(&arbiter, BUFFER);
  st_loss_marks_close(&arbiter, OTHER_BUFFER);
  /* Only the chunk reserved for BUFFER was returned, without a mark. */
  CHECK_EQ(reader.count, 1);
  CHECK(!short_life(OTHER_BUFFER)); /* One use of OTHER_BUFFER is still open. */
  st_loss_marks_close(&arbiter, OTHER_BUFFER);
  read_marks(1);
  CHECK_EQ(got.marks, 0);
  read_marks(2);
  CHECK_EQ(got.marks, 2);
  /* One more close than opens has no effect. */
  st_loss_marks_close(&arbiter, OTHER_BUFFER);
  end();
}

static void test_first_packet_of_a_writer_waits_briefly_for_a_chunk(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  CHECK(!short_life(BUFFER));
  CHECK_EQ(sleeps, 6);
  /* This wait found no chunk, so the next writer does not wait for its first
   * chunk. */
  CHECK(!short_life(BUFFER));
  CHECK_EQ(sleeps, 6);
  struct st_chunk chunk;
  CHECK(st_chunk_at(&arbiter.shm, 1, ST_PAGE_DIV1, 0, &chunk));
  st_arbiter_return_chunk(&arbiter, &chunk, BUFFER);
  CHECK(reader_free_one(&reader));
  /* This writer gets the free chunk, so the next writer waits. */
  CHECK(short_life(BUFFER));
  CHECK(!short_life(BUFFER));
  CHECK_EQ(sleeps, 12);
  end();
}

static void test_forked_child_writes_no_marks(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  pid_t child = fork();
  if (child == 0) {
    st_arbiter_disable(&arbiter);
    st_loss_marks_close(&arbiter, BUFFER);
    _exit(reader.count == 0 && reader.unregistered == 0 ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  end();
}

int main(void) {
  RUN(test_each_ended_writer_with_a_loss_is_marked);
  RUN(test_mark_can_be_scraped_at_once);
  RUN(test_no_mark_is_written_without_a_loss);
  RUN(test_writer_that_marked_its_own_loss_is_not_marked_again);
  RUN(test_losses_that_cannot_be_marked_share_a_later_mark);
  RUN(test_losses_are_marked_in_their_own_buffer);
  RUN(test_first_packet_of_a_writer_waits_briefly_for_a_chunk);
  RUN(test_forked_child_writes_no_marks);
  return 0;
}
