/* Tests of trace buffers in files, and of clones. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_chunk.h"

static int new_file(void) {
  int fd = memfd_create("ring", MFD_CLOEXEC);
  CHECK(fd >= 0);
  return fd;
}

static struct st_trace_buffer* recovered(int fd) {
  struct st_trace_buffer* b = st_trace_buffer_recover(fd);
  CHECK(b);
  begin_read(b);
  return b;
}

static void buffer_in_a_file_survives_its_process(void) {
  int fd = new_file();
  pid_t child = fork();
  if (!child) {
    struct st_trace_buffer* b = st_trace_buffer_create(8192, ST_RING, fd);
    st_trace_buffer_set_producer(b, 1, 1000, 42);
    CHECK(commit_one(b, 1, 0, 10, 'a'));
    CHECK(commit_one(b, 2, 0, 10, 'b'));
    CHECK(commit_one(b, 1, 1, 10, 'c'));
    abort();
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
  struct st_trace_buffer* b = recovered(fd);
  CHECK_EQ(st_trace_buffer_size(b), 8192);
  CHECK_EQ(stats_of(b).chunks_written, 3);
  expect(b, 10, 'a');
  CHECK_EQ(got.uid, 1000);
  CHECK_EQ(got.pid, 42);
  expect(b, 10, 'b');
  expect(b, 10, 'c');
  expect_nothing(b);
  st_trace_buffer_destroy(b);
  /* Reading from the recovered buffer does not change the file. */
  b = recovered(fd);
  expect(b, 10, 'a');
  st_trace_buffer_destroy(b);
  close(fd);
}

/* Reads all packets, then recovers them from the file, as if they could not be
 * written to the trace. */
static void records_that_were_read_are_recovered(void) {
  int fd = new_file();
  struct st_trace_buffer* b = st_trace_buffer_create(8192, ST_RING, fd);
  CHECK(commit_one(b, 1, 0, 10, 'a'));
  CHECK(commit_one(b, 1, 1, 10, 'b'));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'b');
  expect_nothing(b);
  struct st_trace_buffer* r = recovered(fd);
  expect(r, 10, 'a');
  expect(r, 10, 'b');
  expect_nothing(r);
  st_trace_buffer_destroy(r);
  st_trace_buffer_destroy(b);
  close(fd);
}

static void wrapped_ring_is_recovered(void) {
  for (size_t size = 100; size < 3000; size += 377) {
    int fd = new_file();
    struct st_trace_buffer* b = st_trace_buffer_create(8192, ST_RING, fd);
    for (uint32_t i = 0; i < 200; i++)
      CHECK(commit_one(b, 1, i, size, (char)i));
    struct st_buffer_stats s = stats_of(b);
    struct st_trace_buffer* r = recovered(fd);
    begin_read(b);
    CHECK(st_trace_buffer_read_packet(b, &got));
    uint32_t first = (uint8_t)got.data[0];
    expect_loss(r, size, (char)first, ST_LOSS_OVERWRITE);
    for (uint32_t i = first + 1; i < 200; i++)
      expect(r, size, (char)i);
    expect_nothing(r);
    CHECK_EQ(stats_of(r).chunks_overwritten, s.chunks_overwritten);
    CHECK_EQ(stats_of(r).write_wrap_count, s.write_wrap_count);
    st_trace_buffer_destroy(r);
    st_trace_buffer_destroy(b);
    close(fd);
  }
}

static void waiting_records_are_settled_by_recovery(void) {
  int fd = new_file();
  struct st_trace_buffer* b = st_trace_buffer_create(8192, ST_RING, fd);
  chunk(1, 1, 0);
  flags(LAST_CONTINUES | NEEDS_PATCHING);
  add(10, 'a');
  add(10, 'x');
  CHECK(commit(b));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(10, 'x');
  add(10, 'b');
  CHECK(commit(b));
  chunk(1, 2, 0); /* Commits a chunk that is scraped, and later relocated. */
  add(10, 'c');
  pad_to(500);
  CHECK(scrape(b));
  begin_read(b);
  expect(b, 10, 'a');
  expect(b, 10, 'c');
  expect_nothing(b);
  chunk(1, 2, 0);
  add(10, 'c');
  add(10, 'd');
  pad_to(500);
  CHECK(commit(b));
  CHECK_EQ(stats_of(b).chunks_relocated, 1);
  struct st_trace_buffer* r = recovered(fd);
  expect(r, 10, 'a');
  expect_loss(r, 10, 'b', ST_LOSS_WRITER_ABORT | ST_LOSS_ORPHAN_CONTINUATION);
  expect(r, 10, 'c');
  expect(r, 10, 'd');
  expect_nothing(r);
  st_trace_buffer_destroy(r);
  st_trace_buffer_destroy(b);
  close(fd);
}

/* A writer counts a packet before it is written, so a chunk may end in empty
 * packets.  The record stores neither their bytes nor their count. */
static void chunks_with_empty_packets_at_the_end_are_recovered(void) {
  int fd = new_file();
  struct st_trace_buffer* b = st_trace_buffer_create(8192, ST_RING, fd);
  for (uint32_t id = 0; id < 3; id++) {
    /* This chunk was scraped before, so its record has the full size of the
     * chunk. */
    if (id == 1) {
      chunk(1, 1, id);
      add(10, 'a');
      pad_to(500);
      CHECK(scrape(b));
    }
    chunk(1, 1, id);
    add(10, 'a');
    add(0, 0);
    add(0, 0);
    pad_to(id == 1 ? 500 : fake.payload_size);
    CHECK(commit(b));
  }
  CHECK_EQ(stats_of(b).chunks_rewritten, 1);
  struct st_trace_buffer* r = recovered(fd);
  for (int i = 0; i < 3; i++)
    expect(r, 10, 'a');
  expect_nothing(r);
  st_trace_buffer_destroy(r);
  st_trace_buffer_destroy(b);
  close(fd);
}

/* A process died while it relocated a chunk: both records look valid. */
static void chunk_with_two_records_is_recovered_once(void) {
  int fd = new_file();
  struct st_trace_buffer* b = st_trace_buffer_create(4096, ST_RING, fd);
  for (int fragments = 1; fragments < 3; fragments++) {
    chunk(1, 1, 0);
    for (int i = 0; i < fragments; i++)
      add(10, (char)('a' + i));
    pad_to(100);
    CHECK(fragments == 1 ? scrape(b) : commit(b));
    if (fragments > 1)
      break;
    begin_read(b);
    expect(b, 10, 'a');
    expect_nothing(b);
  }
  CHECK_EQ(stats_of(b).chunks_relocated, 1);
  /* Changes the flags of the first record in the file, so that the record is
   * incomplete and no longer padding. */
  off_t first = lseek(fd, 0, SEEK_END) - 4096;
  CHECK(pwrite(fd, "\x08", 1, first + 12) == 1);
  CHECK(pwrite(fd, "\x01", 1, first + 8) == 1);
  struct st_trace_buffer* r = recovered(fd);
  expect(r, 10, 'a');
  expect(r, 10, 'b');
  expect_nothing(r);
  st_trace_buffer_destroy(r);
  st_trace_buffer_destroy(b);
  close(fd);
}

static void files_that_are_no_ring_are_refused(void) {
  int fd = new_file();
  CHECK(!st_trace_buffer_recover(fd));
  CHECK(!ftruncate(fd, 1 << 20));
  CHECK(!st_trace_buffer_recover(fd));
  CHECK(!st_trace_buffer_recover(-1));
  close(fd);
  fd = open("/dev/full", O_RDWR);
  CHECK(!st_trace_buffer_create(4096, ST_RING, fd));
  close(fd);
}

/* Whichever bytes of the file are wrong, recovery must end and must read only
 * inside the file. */
static void recovery_survives_damaged_files(void) {
  int fd = new_file();
  struct st_trace_buffer* b = st_trace_buffer_create(8192, ST_RING, fd);
  for (uint32_t i = 0; i < 40; i++) {
    chunk(1, (uint16_t)(1 + i % 3), i / 3);
    flags(i % 2 ? FIRST_CONTINUES : LAST_CONTINUES);
    add(50 + i, 'a');
    add(150, 'b');
    if (i % 5)
      commit(b);
    else
      scrape(b);
  }
  st_trace_buffer_destroy(b);
  size_t size = (size_t)lseek(fd, 0, SEEK_END);
  uint8_t* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  size_t ring_start = size - 8192;
  srand(3);
  for (int i = 0; i < 2000; i++) {
    size_t at =
        rand() % 8 ? ring_start + (size_t)rand() % 8192 : (size_t)rand() % 64;
    uint8_t old = p[at];
    p[at] = (uint8_t)rand();
    b = st_trace_buffer_recover(fd);
    if (b) {
      begin_read(b);
      while (st_trace_buffer_read_packet(b, &got)) {
      }
      st_trace_buffer_destroy(b);
    }
    if (rand() % 4)
      p[at] = old;
  }
  munmap(p, size);
  close(fd);
}

static void clone_continues_at_the_read_position_of_its_source(void) {
  struct st_trace_buffer* b = ring(4096);
  st_trace_buffer_set_producer(b, 1, 5, 6);
  chunk(1, 1, 0);
  add(10, 'a');
  add(10, 'b');
  CHECK(commit(b));
  CHECK(commit_one(b, 2, 0, 10, 'c'));
  begin_read(b);
  expect(b, 10, 'a');
  struct st_trace_buffer* clone = st_trace_buffer_clone(b);
  CHECK(clone);
  begin_read(clone);
  /* The packet was copied to the reader's scratch, but was not returned. */
  expect(clone, 10, 'b');
  expect(clone, 10, 'c');
  CHECK_EQ(got.uid, 5);
  CHECK_EQ(got.pid, 6);
  expect_nothing(clone);
  CHECK_EQ(stats_of(clone).chunks_written, 2);
  CHECK_EQ(stats_of(clone).chunks_read, 1);
  expect(b, 10, 'b');
  expect(b, 10, 'c');
  CHECK(commit_one(b, 2, 2, 10, 'd'));
  CHECK(commit_one(clone, 2, 1, 10, 'e'));
  begin_read(clone);
  expect(clone, 10, 'e');
  begin_read(b);
  expect_loss(b, 10, 'd', ST_LOSS_READ_GAP);
  st_trace_buffer_destroy(clone);
  st_trace_buffer_destroy(b);
}

static void wrapped_ring_can_be_cloned(void) {
  struct st_trace_buffer* b = ring(1 << 18);
  for (uint32_t i = 0; i < 2000; i++)
    CHECK(commit_one(b, 1, i, 1000, (char)i));
  struct st_trace_buffer* clone = st_trace_buffer_clone(b);
  begin_read(b);
  begin_read(clone);
  while (st_trace_buffer_read_packet(b, &got)) {
    uint32_t loss = got.loss;
    expect_lossy(clone, got.size, (char)got.data[0]);
    CHECK_EQ(got.loss, loss);
  }
  expect_nothing(clone);
  st_trace_buffer_destroy(clone);
  st_trace_buffer_destroy(b);
}

static void clone_of_a_chunk_that_needs_patches_waits_for_them(void) {
  struct st_trace_buffer* b = ring(4096);
  chunk(1, 1, 0);
  flags(NEEDS_PATCHING | LAST_CONTINUES);
  add(10, 'a');
  CHECK(commit(b));
  chunk(1, 1, 1);
  flags(FIRST_CONTINUES);
  add(10, 'a');
  CHECK(commit(b));
  struct st_trace_buffer* clone = st_trace_buffer_clone(b);
  begin_read(clone);
  expect_nothing(clone);
  struct st_patch_data data = {.offset = 1, .data = {'a', 'a', 'a', 'a'}};
  CHECK(st_trace_buffer_patch(clone, 1, 1, 0, &data, 1, false));
  begin_read(clone);
  expect(clone, 20, 'a');
  st_trace_buffer_destroy(clone);
  st_trace_buffer_destroy(b);
}

static uint64_t signalled(int fd) {
  uint64_t n = 0;
  return read(fd, &n, sizeof n) == sizeof n ? n : 0;
}

static void eventfd_is_written_when_the_watermark_is_exceeded(void) {
  struct st_trace_buffer* b = ring(4096);
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  st_trace_buffer_set_watermark(b, fd, 100);
  uint32_t id = 0;
  for (int round = 0; round < 3; round++) {
    /* The record takes 80 bytes in the ring. */
    CHECK(commit_one(b, 1, id++, 60, 'a'));
    CHECK_EQ(signalled(fd), 0);
    CHECK(commit_one(b, 1, id++, 60, 'a'));
    CHECK(commit_one(b, 1, id++, 60, 'a'));
    CHECK_EQ(signalled(fd), 1);
    CHECK_EQ(st_trace_buffer_unread(b), 240);
    begin_read(b);
    for (int i = 0; i < 3; i++)
      expect(b, 60, 'a');
    expect_nothing(b);
    CHECK_EQ(st_trace_buffer_unread(b), 0);
  }
  st_trace_buffer_set_watermark(b, -1, 0);
  for (int i = 0; i < 10; i++)
    CHECK(commit_one(b, 1, id++, 60, 'a'));
  CHECK_EQ(signalled(fd), 0);
  close(fd);
  st_trace_buffer_destroy(b);
}

enum { WRITERS = 3, CHUNKS = 2000, PACKETS = 20 };
static struct st_trace_buffer* shared;
static _Atomic int running;

/* Writes packets of four bytes with increasing numbers.  Every other chunk ends
 * with half a packet, whose other half is followed by more packets. */
static void* write_chunks(void* arg) {
  uint16_t writer = (uint16_t)(intptr_t)arg;
  uint8_t payload[256];
  bool halved = false;
  uint32_t number = 0;
  for (uint32_t id = 0; id < CHUNKS; id++) {
    uint8_t* p = payload;
    struct st_chunk_copy c = {.producer_id = 1,
                              .writer_id = writer,
                              .chunk_id = id,
                              .complete = true,
                              .payload = payload};
    for (; c.fragments < PACKETS; c.fragments++) {
      bool rest = halved && c.fragments == 0;
      bool half = id % 2 == 0 && c.fragments == PACKETS - 1;
      size_t from = rest ? 2 : 0, size = rest || half ? 2 : 4;
      *p++ = (uint8_t)size;
      memcpy(p, (uint8_t*)&number + from, size);
      p += size;
      if (rest)
        c.flags |= FIRST_CONTINUES;
      if (half)
        c.flags |= LAST_CONTINUES;
      halved = half;
      if (!half)
        number++;
    }
    c.payload_size = (size_t)(p - payload);
    CHECK(st_trace_buffer_copy_chunk(shared, &c));
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

/* Checks that packets are complete and in order, and that each gap between them
 * is marked. */
static void check_packets(uint32_t* next) {
  begin_read(shared);
  while (st_trace_buffer_read_packet(shared, &got)) {
    uint32_t number;
    CHECK_EQ(got.size, 4);
    memcpy(&number, got.data, 4);
    uint32_t expected = next[got.writer_id];
    CHECK(number == expected || (number > expected && got.loss));
    next[got.writer_id] = number + 1;
  }
}

static void check_clone(void) {
  struct st_trace_buffer* clone = st_trace_buffer_clone(shared);
  begin_read(clone);
  while (st_trace_buffer_read_packet(clone, &got))
    CHECK_EQ(got.size, 4);
  st_trace_buffer_destroy(clone);
}

/* Runs one reader and several writers of one ring. */
static void read_while_written(size_t size) {
  shared = ring(size);
  pthread_t threads[WRITERS];
  uint32_t next[WRITERS + 1] = {0};
  atomic_store(&running, WRITERS);
  for (intptr_t i = 0; i < WRITERS; i++)
    CHECK(!pthread_create(&threads[i], NULL, write_chunks, (void*)(i + 1)));
  for (bool last = false; !last;) {
    last = !atomic_load(&running);
    if (size == 65536)
      check_clone();
    check_packets(next);
  }
  for (int i = 0; i < WRITERS; i++)
    pthread_join(threads[i], NULL);
  struct st_buffer_stats s = stats_of(shared);
  CHECK_EQ(s.abi_violations, 0);
  CHECK_EQ(s.chunks_discarded, 0);
  CHECK_EQ(s.chunks_written, WRITERS * CHUNKS);
  if (size == 1 << 20)
    CHECK_EQ(s.chunks_overwritten, 0);
  CHECK_EQ(st_trace_buffer_unread(shared), 0);
  st_trace_buffer_destroy(shared);
}

/* Small ring: chunks are overwritten while the reader assembles a packet.  Each
 * loss must be marked. */
static void losses_with_concurrent_writers_and_a_reader_are_marked(void) {
  for (int i = 0; i < 20; i++)
    read_while_written(4096);
  read_while_written(65536);
  read_while_written(1 << 20);
}

int main(void) {
  RUN(buffer_in_a_file_survives_its_process);
  RUN(records_that_were_read_are_recovered);
  RUN(wrapped_ring_is_recovered);
  RUN(waiting_records_are_settled_by_recovery);
  RUN(chunks_with_empty_packets_at_the_end_are_recovered);
  RUN(chunk_with_two_records_is_recovered_once);
  RUN(files_that_are_no_ring_are_refused);
  RUN(recovery_survives_damaged_files);
  RUN(clone_continues_at_the_read_position_of_its_source);
  RUN(wrapped_ring_can_be_cloned);
  RUN(clone_of_a_chunk_that_needs_patches_waits_for_them);
  RUN(eventfd_is_written_when_the_watermark_is_exceeded);
  RUN(losses_with_concurrent_writers_and_a_reader_are_marked);
  return 0;
}
