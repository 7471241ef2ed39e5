/* Attack test: a producer changes its memory while the service reads it.
 *
 * A child process rewrites all bytes of one producer's pages as fast as it can.
 * Meanwhile the service moves, scrapes and patches this producer's chunks, and
 * reads the buffer that it shares with an honest producer.  The service must
 * not crash, block, or change the honest producer's data.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_chunk.h"
#include "producer_endpoint.h"
#include "random.h"

enum {
  PAGE = 4096,
  PAGES = 4,
  MEMORY = PAGE * PAGES,
  BUFFER = 7,
  FORBIDDEN = 8,
  HOSTILE = 1,
  HONEST = 2,
  WRITER = 5, /* The writer id that both producers use. */
  ROUNDS = 1500,
};

/* Replaces nanosleep and fails the test: the service must not wait for this
 * producer, because others would wait, too. */
int nanosleep(const struct timespec* a, struct timespec* b) {
  (void)a, (void)b;
  CHECK(!"the service slept");
  return 0;
}

int sched_yield(void) {
  CHECK(!"the service yielded");
  return 0;
}

struct side {
  struct st_shm shm;
  struct st_producer_endpoint endpoint;
};

static struct st_buffer_table* table;
static struct st_trace_buffer *buffer, *forbidden;
static struct side hostile, honest;
/* The number of rounds that the child has made so far. */
static _Atomic uint32_t* rewrites;
static uint64_t random_state;

static uint32_t below(uint32_t limit) {
  return (uint32_t)random_below(&random_state, limit);
}

static void* new_shared_memory(void) {
  void* memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

static void set_up_side(struct side* side, uint16_t producer) {
  void* memory = new_shared_memory();
  CHECK(st_shm_init(&side->shm, memory, MEMORY, PAGE));
  CHECK(st_producer_endpoint_init(&side->endpoint, producer, table));
  st_producer_endpoint_set_shm(&side->endpoint, &side->shm);
  st_producer_endpoint_allow_buffer(&side->endpoint, BUFFER, true);
  st_trace_buffer_set_producer(buffer, producer, 1000 + producer,
                               2000 + producer);
}

static void set_up(void) {
  table = st_buffer_table_create();
  buffer = ring(1 << 18);
  forbidden = ring(4096);
  CHECK(st_buffer_table_add(table, BUFFER, buffer));
  CHECK(st_buffer_table_add(table, FORBIDDEN, forbidden));
  rewrites = new_shared_memory();
  set_up_side(&hostile, HOSTILE);
  set_up_side(&honest, HONEST);
  for (uint32_t writer = 1; writer < 8; writer++)
    st_producer_endpoint_register_writer(&hostile.endpoint, writer,
                                         writer & 1 ? BUFFER : FORBIDDEN);
}

static void tear_down_side(struct side* side) {
  st_producer_endpoint_destroy(&side->endpoint);
  munmap(side->shm.start, MEMORY);
}

static void tear_down(void) {
  tear_down_side(&hostile);
  tear_down_side(&honest);
  st_buffer_table_destroy(table);
  munmap(rewrites, MEMORY);
}

static void rewrite_bitmap(uint8_t* page) {
  uint32_t bitmap = (uint32_t)random_next(&random_state);
  if (below(4)) /* A layout that is valid, with chunks that can be moved. */
    bitmap = (1 + below(5)) << ST_BITMAP_LAYOUT_SHIFT |
             (bitmap & ST_BITMAP_CHUNKS_MASK) | 0x03333333;
  atomic_store((_Atomic uint32_t*)page, bitmap);
}

/* Writes plausible values: few writers, consecutive ids, some fragments. */
static void rewrite_header(uint8_t* chunk) {
  struct st_chunk_header* h = (struct st_chunk_header*)chunk;
  atomic_store(&h->chunk_id, below(9) ? *rewrites : below(UINT32_MAX));
  atomic_store(&h->writer_id, (uint16_t)(below(9) ? below(8) : below(65536)));
  atomic_store(&h->packets, (uint16_t)(below(3) ? below(40) : below(65536)));
}

static void rewrite_payload(uint8_t* chunk, size_t size) {
  static const uint8_t sizes[] = {0, 1, 7, 0x7F, 0x80, 0xFF};
  for (int i = 0; i < 16; i++) {
    size_t at = ST_CHUNK_HEADER_SIZE + below((uint32_t)size - 8);
    chunk[at] = below(2) ? sizes[below(6)] : (uint8_t)below(256);
  }
}

static _Noreturn void rewrite_for_ever(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    uint32_t number = below(PAGES);
    uint8_t* page = hostile.shm.start + number * PAGE;
    rewrite_bitmap(page);
    for (int i = 0; i < 4; i++) {
      struct st_chunk c;
      uint32_t layout = 1 + below(5);
      uint32_t index = below(st_layout_chunks(layout));
      CHECK(st_chunk_at(&hostile.shm, number, layout, index, &c));
      rewrite_header(c.begin);
      rewrite_payload(c.begin, c.size);
    }
    atomic_fetch_add(rewrites, 1);
  }
}

/* Waits until the other process has made a round.  With fewer than two idle
 * processors both processes would otherwise not run in turn. */
static void wait_for_rewrites(uint32_t* seen) {
  while (atomic_load(rewrites) == *seen)
    usleep(10);
  *seen = atomic_load(rewrites);
}

static uint8_t* put_move(uint8_t* p) {
  static const uint32_t targets[] = {BUFFER,    BUFFER, BUFFER, BUFFER,
                                     FORBIDDEN, 0,      9,      UINT32_MAX};
  uint8_t m[32], *end = m;
  end = st_put_u64_field(end, 1, below(PAGES + 1));
  end = st_put_u64_field(end, 2, below(15));
  end = st_put_u64_field(end, 3, targets[below(8)]);
  return st_put_bytes_field(p, 1, m, (size_t)(end - m));
}

static uint8_t* put_patch(uint8_t* p, uint32_t target, uint32_t chunk_id,
                          uint32_t offset) {
  uint8_t m[64], patch[16], *end = patch;
  end = st_put_u64_field(end, 1, offset);
  end = st_put_bytes_field(end, 2, "\xFF\xFF\xFF\x7F", 4);
  size_t size = (size_t)(end - patch);
  end = st_put_u64_field(m, 1, target);
  end = st_put_u64_field(end, 2, WRITER);
  end = st_put_u64_field(end, 3, chunk_id);
  end = st_put_bytes_field(end, 4, patch, size);
  return st_put_bytes_field(p, 2, m, (size_t)(end - m));
}

/* Moves all chunks of the hostile producer, and sends random patches, also for
 * the honest producer's newest chunk, which has the same writer and chunk
 * id. */
static void serve_the_hostile_one(uint32_t honest_chunk) {
  uint8_t request[4096], *p = request;
  uint64_t flush_id;
  for (int i = 0; i < 30; i++)
    p = put_move(p);
  for (int i = 0; i < 10; i++)
    p = put_patch(p, BUFFER, *rewrites - below(9), below(300));
  p = put_patch(p, BUFFER, honest_chunk, 1);
  p = put_patch(p, FORBIDDEN, 0, 0);
  CHECK(st_producer_endpoint_commit(&hostile.endpoint, request,
                                    (size_t)(p - request), &flush_id));
  const uint16_t all[] = {BUFFER, FORBIDDEN};
  st_producer_endpoint_scrape(&hostile.endpoint, all, 2);
}

static uint32_t put_number(struct st_chunk* c, uint32_t number) {
  uint8_t* p = c->begin + ST_CHUNK_HEADER_SIZE;
  for (int i = 0; i < 10; i++, number++) {
    *p++ = sizeof number;
    memcpy(p, &number, sizeof number);
    p += sizeof number;
  }
  return number;
}

/* Writes ten numbered packets through the honest producer's memory. */
static uint32_t commit_honest_chunk(uint32_t chunk_id, uint32_t number) {
  struct st_chunk c;
  CHECK(st_page_try_partition(&honest.shm, 0, ST_PAGE_DIV1));
  CHECK(st_chunk_try_acquire_for_writing(&honest.shm, 0, 0, WRITER, chunk_id,
                                         10, &c));
  number = put_number(&c, number);
  CHECK(st_chunk_release_as_complete(&honest.shm, &c));
  st_producer_endpoint_move_chunk(&honest.endpoint, 0, 0, BUFFER);
  return number;
}

/* Reads the buffer.  Returns how many packets of the hostile producer it
 * contained. */
static uint64_t read_all(uint32_t* expected) {
  uint64_t hostile_packets = 0;
  begin_read(buffer);
  while (st_trace_buffer_read_packet(buffer, &got)) {
    CHECK_EQ(got.uid, 1000 + got.producer_id);
    CHECK_EQ(got.pid, 2000 + got.producer_id);
    if (got.producer_id == HOSTILE) {
      hostile_packets++;
      continue;
    }
    CHECK_EQ(got.producer_id, HONEST);
    CHECK_EQ(got.size, sizeof *expected);
    CHECK_EQ(got.loss, 0);
    CHECK(!memcmp(got.data, expected, sizeof *expected));
    ++*expected;
  }
  return hostile_packets;
}

static void service_survives_a_producer_that_rewrites_its_memory(void) {
  random_state = 77;
  set_up();
  pid_t child = fork();
  CHECK(child >= 0);
  if (!child)
    rewrite_for_ever();
  uint32_t number = 0, expected = 0, seen = 0;
  uint64_t hostile_packets = 0;
  for (uint32_t i = 0; i < ROUNDS; i++) {
    wait_for_rewrites(&seen);
    number = commit_honest_chunk(i, number);
    serve_the_hostile_one(i);
    hostile_packets += read_all(&expected);
    CHECK_EQ(expected, number);
  }
  kill(child, SIGKILL);
  CHECK(waitpid(child, NULL, 0) == child);
  /* With fewer packets the attack would have had no effect. */
  CHECK(hostile_packets > 100);
  CHECK(hostile.endpoint.stats.chunks_discarded > 100);
  CHECK_EQ(honest.endpoint.stats.chunks_discarded, 0);
  CHECK_EQ(stats_of(forbidden).chunks_written, 0);
  CHECK_EQ(stats_of(forbidden).patches_succeeded, 0);
  tear_down();
}

/* Binds the process to one processor.  Without this both processes may stay on
 * the same one and never conflict. */
static void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static _Noreturn void toggle_for_ever(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(1);
  _Atomic uint32_t* bitmap = (_Atomic uint32_t*)hostile.shm.start;
  for (uint32_t i = 0;; i++) {
    atomic_store(bitmap, ST_PAGE_DIV14 << ST_BITMAP_LAYOUT_SHIFT | 3 |
                             (i << 4 & ST_BITMAP_CHUNKS_MASK));
    atomic_store(rewrites, i);
  }
}

/* The service's compare-and-swap fails each time, so the service gives up this
 * chunk. */
static void service_gives_up_a_page_whose_bitmap_never_settles(void) {
  set_up();
  pid_t child = fork();
  CHECK(child >= 0);
  if (!child)
    toggle_for_ever();
  pin(0);
  uint32_t seen = 0;
  for (int round = 0; round < 50; round++) {
    wait_for_rewrites(&seen);
    for (int i = 0; i < 10000; i++)
      st_producer_endpoint_move_chunk(&hostile.endpoint, 0, 0, BUFFER);
  }
  kill(child, SIGKILL);
  CHECK(waitpid(child, NULL, 0) == child);
  CHECK_EQ(stats_of(forbidden).chunks_written, 0);
  tear_down();
}

int main(void) {
  RUN(service_survives_a_producer_that_rewrites_its_memory);
  RUN(service_gives_up_a_page_whose_bitmap_never_settles);
  return 0;
}
