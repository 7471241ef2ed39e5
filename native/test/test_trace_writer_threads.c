/* Tests of writers on several threads with one arbiter, whose sink frees chunks
 * at once: no packet may be lost or torn.  The thread sanitizer checks for
 * races. */
#include "core/trace_writer.h"

#include <pthread.h>
#include <string.h>

#include "canonical.h"
#include "check.h"
#include "random.h"

enum { PAGE = 4096, PAGES = 8 };
static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[PAGES * PAGE];
static struct st_arbiter arbiter;

enum { THREADS = 8, PACKETS = 3000 };

/* A sink that frees each chunk and counts its packets.  It runs on the writing
 * threads. */
struct counting_sink {
  struct st_shm shm;
  _Atomic uint64_t fragments, sum;
};

static uint64_t sum_bytes(const uint8_t* p, const uint8_t* limit,
                          unsigned fragments) {
  uint64_t sum = 0;
  for (; fragments > 0; fragments--) {
    uint64_t size;
    p = read_varint(p, limit, &size);
    CHECK(size <= (size_t)(limit - p));
    for (; size > 0; size--)
      sum += *p++;
  }
  return sum;
}

static void count_chunk(void* self, const struct st_chunk* done,
                        uint32_t target_buffer) {
  struct counting_sink* s = self;
  struct st_chunk c;
  CHECK_EQ(target_buffer, 7);
  CHECK(st_chunk_try_acquire_for_reading(&s->shm, done->page, done->index, &c));
  unsigned raw = atomic_load(&st_chunk_header(&c)->packets);
  unsigned count = raw & ST_PACKETS_COUNT_MASK;
  atomic_fetch_add(&s->sum, sum_bytes(c.begin + ST_CHUNK_HEADER_SIZE,
                                      c.begin + c.size, count));
  atomic_fetch_add(&s->fragments, count);
  CHECK(st_chunk_release_as_free(&s->shm, &c));
}
static void no_patches(void* self, const struct st_chunk_patches* patches) {
  (void)self, (void)patches;
  CHECK(!"no nested messages here");
}
static void ignore(void* self) {
  (void)self;
}
static void ignore_register(void* self, uint16_t writer, uint32_t buffer) {
  (void)self, (void)writer, (void)buffer;
}
static void ignore_unregister(void* self, uint16_t writer) {
  (void)self, (void)writer;
}
static const struct st_commit_sink kCountingSink = {
    .chunk_complete = count_chunk,
    .patch = no_patches,
    .flush = ignore,
    .register_writer = ignore_register,
    .unregister_writer = ignore_unregister,
};

static _Atomic uint64_t written_sum;

static void* write_packets(void* seed) {
  struct st_trace_writer w;
  uint64_t state = (uint64_t)(uintptr_t)seed;
  uint8_t packet[6000];
  /* The sum of the bytes of the prefix in the first packet of a writer. */
  uint64_t sum = 0xB8 + 0x05 + 0x01;
  CHECK(st_trace_writer_init(&w, &arbiter, 7, ST_STALL));
  random_fill(&state, packet, sizeof packet);
  for (int i = 0; i < PACKETS; i++) {
    size_t size = random_below(&state, i % 50 ? 100 : sizeof packet);
    uint8_t* p = st_trace_writer_reserve(&w, size > 127 ? 127 : size);
    if (p && size <= 127) {
      memcpy(p, packet, size);
      st_trace_writer_commit(&w, p + size);
    } else {
      struct st_iovec piece = {packet, size};
      CHECK(st_trace_writer_append(&w, &piece, 1));
    }
    for (size_t k = 0; k < size; k++)
      sum += packet[k];
  }
  CHECK_EQ(w.packets_written, PACKETS);
  CHECK_EQ(w.packets_dropped, 0);
  st_trace_writer_destroy(&w);
  atomic_fetch_add(&written_sum, sum);
  return NULL;
}

static void test_writers_on_many_threads_lose_no_packet(void) {
  struct st_shm shm;
  memset(memory, 0, sizeof memory);
  CHECK(st_shm_init(&shm, memory, sizeof memory, PAGE));
  struct counting_sink sink = {.shm = shm};
  CHECK(st_arbiter_init(&arbiter, &shm, &kCountingSink, &sink));
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, write_packets, (void*)(i + 1)),
             0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  CHECK_EQ(arbiter.live_writers, 0);
  CHECK(sink.fragments >= THREADS * PACKETS);
  CHECK_EQ(sink.sum, written_sum);
  for (uint32_t page = 0; page < shm.num_pages; page++)
    CHECK_EQ(st_page_bitmap(&shm, page), 0);
  st_arbiter_destroy(&arbiter);
}

int main(void) {
  RUN(test_writers_on_many_threads_lose_no_packet);
  return 0;
}
