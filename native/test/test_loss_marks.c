/* What a writer lost that never wrote again stands in the trace all the same. */
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
  arbiter.live_writers = 0; /* one chunk per page */
  while (st_arbiter_get_chunk(&arbiter, 99, 0, 0, ST_DROP).size)
    continue;
}

/* A thread that comes, writes one packet and goes. */
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

static void test_each_dead_writer_has_its_mark(void) {
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

static void test_a_mark_is_visible_at_once(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  struct st_chunk chunk;
  CHECK(st_chunk_at(&arbiter.shm, 0, ST_PAGE_DIV1, 0, &chunk));
  struct st_chunk_header* header = st_chunk_header(&chunk);
  CHECK_EQ(atomic_load(&header->packets), 1); /* nothing to scrape */
  take_all_chunks();
  CHECK(!short_life(BUFFER));
  CHECK_EQ(atomic_load(&header->packets), 3);
  end();
}

static void test_without_loss_it_says_nothing(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  CHECK(short_life(BUFFER));
  st_loss_marks_close(&arbiter, BUFFER);
  read_marks(1);
  CHECK_EQ(got.firsts + got.marks, 0);
  end();
}

static void test_only_who_owes_is_marked(void) {
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
  CHECK(st_trace_writer_append(&w, &piece, 1)); /* carries the mark itself */
  st_trace_writer_destroy(&w);
  st_loss_marks_close(&arbiter, BUFFER);
  read_marks(1);
  CHECK_EQ(got.marks, 0);
  end();
}

/* Chunk and memory full: the marks wait, and become one. */
static void test_marks_without_room_are_added_up(void) {
  enum { DEAD = 4000 };
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  for (int i = 0; i < DEAD; i++)
    CHECK(!short_life(BUFFER));
  CHECK_EQ(reader.count, 1); /* it was full */
  read_marks(1);
  unsigned before = got.marks;
  CHECK(before > 100 && before < DEAD);
  CHECK(reader_free_one(&reader));
  st_loss_marks_close(&arbiter, BUFFER);
  read_marks(1);
  CHECK_EQ(got.marks, before + 1);
  end();
}

static void test_buffers_are_kept_apart(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  CHECK(st_loss_marks_open(&arbiter, OTHER_BUFFER));
  CHECK(st_loss_marks_open(&arbiter, OTHER_BUFFER));
  take_all_chunks();
  CHECK(!short_life(OTHER_BUFFER));
  st_loss_marks_close(&arbiter, BUFFER);
  st_loss_marks_close(&arbiter, OTHER_BUFFER);
  CHECK_EQ(reader.count, 1);        /* of BUFFER: empty */
  CHECK(!short_life(OTHER_BUFFER)); /* there is one user left */
  st_loss_marks_close(&arbiter, OTHER_BUFFER);
  read_marks(1);
  CHECK_EQ(got.marks, 0);
  read_marks(2);
  CHECK_EQ(got.marks, 2);
  st_loss_marks_close(&arbiter, OTHER_BUFFER); /* once too often: harmless */
  end();
}

static void test_a_first_packet_waits_briefly(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  CHECK(!short_life(BUFFER));
  CHECK_EQ(sleeps, 6);
  CHECK(!short_life(BUFFER)); /* nobody waits after a wait in vain ... */
  CHECK_EQ(sleeps, 6);
  struct st_chunk chunk;
  CHECK(st_chunk_at(&arbiter.shm, 1, ST_PAGE_DIV1, 0, &chunk));
  st_arbiter_return_chunk(&arbiter, &chunk, BUFFER);
  CHECK(reader_free_one(&reader));
  CHECK(short_life(BUFFER)); /* ... until a chunk was had again */
  CHECK(!short_life(BUFFER));
  CHECK_EQ(sleeps, 12);
  end();
}

static void test_in_a_forked_child(void) {
  start();
  CHECK(st_loss_marks_open(&arbiter, BUFFER));
  take_all_chunks();
  pid_t child = fork();
  if (child == 0) {
    st_arbiter_disable_after_fork(&arbiter);
    st_loss_marks_close(&arbiter, BUFFER);
    _exit(reader.count == 0 && reader.unregistered == 0 ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  end();
}

int main(void) {
  RUN(test_each_dead_writer_has_its_mark);
  RUN(test_a_mark_is_visible_at_once);
  RUN(test_without_loss_it_says_nothing);
  RUN(test_only_who_owes_is_marked);
  RUN(test_marks_without_room_are_added_up);
  RUN(test_buffers_are_kept_apart);
  RUN(test_a_first_packet_waits_briefly);
  RUN(test_in_a_forked_child);
  return 0;
}
