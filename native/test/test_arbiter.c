/* Tests of chunk and writer id allocation, and of the calls of the sink. */
#include "core/arbiter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "chunk_reader.h"
#include "fork_guard.h"

enum { PAGES = 14, PAGE = 4096, BIG_PAGES = 600 };
static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[BIG_PAGES * PAGE];
static struct chunk_reader reader;
static struct st_arbiter arbiter;

static void start_with(uint32_t pages) {
  struct st_shm shm;
  memset(memory, 0, sizeof memory);
  CHECK(st_shm_init(&shm, memory, (size_t)pages * PAGE, PAGE));
  reader_init(&reader, &shm);
  CHECK(st_arbiter_init(&arbiter, &shm, &kReaderSink, &reader));
}

static void start(void) {
  start_with(PAGES);
}

static void end(void) {
  st_arbiter_destroy(&arbiter);
  reader_destroy(&reader);
}

static struct st_chunk get(uint32_t id) {
  return st_arbiter_get_chunk(&arbiter, 1, id, 0, ST_DROP);
}

static void test_returned_chunks_reach_the_sink(void) {
  start();
  /* With this number of writers the finest layout is selected. */
  arbiter.live_writers = 1000;
  struct st_chunk chunks[30];
  for (uint32_t i = 0; i < 30; i++) {
    chunks[i] = get(i);
    CHECK_EQ(chunks[i].size, 292);
    CHECK_EQ(chunks[i].page, i / 14);
    CHECK_EQ(chunks[i].index, i % 14);
  }
  for (uint32_t i = 30; i-- > 0;)
    st_arbiter_return_chunk(&arbiter, &chunks[i], (uint16_t)(i % 3));
  CHECK_EQ(reader.count, 30);
  for (uint32_t i = 0; i < 30; i++) {
    CHECK_EQ(reader.chunks[29 - i].chunk_id, i);
    CHECK_EQ(reader.chunks[29 - i].target_buffer, i % 3);
    CHECK_EQ(reader.chunks[29 - i].place.page, i / 14);
    CHECK_EQ(reader.chunks[29 - i].place.index, i % 14);
  }
  end();
}

static void test_layout_gets_finer_with_more_live_writers(void) {
  static const struct {
    uint32_t live, size;
  } kCases[] = {{0, 4088},  {3, 4088}, {4, 2044}, {7, 2044}, {8, 1020},
                {14, 1020}, {15, 584}, {24, 584}, {25, 292}, {30000, 292}};
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    /* The layout depends on a quarter of all chunks.  For 14 pages this is 3.5,
     * 7, 14, 24.5 or 49 chunks. */
    start();
    arbiter.live_writers = kCases[i].live;
    CHECK_EQ(get(0).size, kCases[i].size);
    end();
  }
}

static void test_many_writers_are_crowded_when_an_eighth_of_all_chunks_is_taken(
    void) {
  enum { EIGHTH = PAGES * 14 / 8, LEFT = PAGES * 14 - EIGHTH - 1 };
  start();
  arbiter.live_writers = 25;
  for (uint32_t id = 0; id <= EIGHTH; id++) {
    CHECK(!st_arbiter_is_crowded(&arbiter));
    CHECK(get(id).size > 0);
  }
  CHECK(st_arbiter_is_crowded(&arbiter));
  CHECK(!st_arbiter_is_crowded(&arbiter));
  for (uint32_t id = 0; id < LEFT; id++)
    CHECK(get(id).size > 0);
  CHECK(st_arbiter_is_crowded(&arbiter));
  CHECK_EQ(get(0).size, 0);
  /* No chunk was taken since the last call, so there is none to give back. */
  CHECK(!st_arbiter_is_crowded(&arbiter));
  end();
}

static void test_few_writers_are_never_crowded(void) {
  start();
  for (uint32_t id = 0; id < PAGES; id++)
    CHECK(get(id).size > 0);
  CHECK_EQ(get(PAGES).size, 0);
  CHECK(!st_arbiter_is_crowded(&arbiter));
  end();
}

static void test_partitioned_pages_keep_their_layout(void) {
  start();
  CHECK_EQ(get(0).size, 4088);
  arbiter.live_writers = 5;
  struct st_chunk second = get(1);
  CHECK_EQ(second.size, 2044);
  arbiter.live_writers = 0;
  struct st_chunk third = get(2);
  CHECK_EQ(third.page, second.page);
  CHECK_EQ(third.index, 1);
  CHECK_EQ(get(3).size, 4088);
  end();
}

static void test_drop_policy_gives_up_without_a_stall(void) {
  start();
  for (uint32_t i = 0; i < PAGES; i++)
    CHECK(get(i).size > 0);
  CHECK_EQ(get(PAGES).size, 0);
  CHECK_EQ(reader.flushes, 0);
  end();
}

static void test_search_finds_the_only_free_chunk(void) {
  start_with(BIG_PAGES);
  struct st_chunk chunks[BIG_PAGES];
  for (uint32_t i = 0; i < BIG_PAGES; i++)
    chunks[i] = get(i);
  for (uint32_t victim = 0; victim < BIG_PAGES; victim += 97) {
    CHECK_EQ(get(0).size, 0);
    st_arbiter_return_chunk(&arbiter, &chunks[victim], 1);
    CHECK(reader_free_one(&reader));
    struct st_chunk again = {0};
    for (int tries = 0; tries < 3 && !again.size; tries++)
      again = get(0);
    CHECK_EQ(again.page, victim);
    CHECK_EQ(again.size, 4088);
  }
  end();
}

static void test_page_that_is_free_again_is_used_next(void) {
  start();
  reader.free_at_once = true;
  for (uint32_t id = 0; id < 5; id++) {
    struct st_chunk chunk = get(id);
    CHECK_EQ(chunk.page, 0);
    st_arbiter_return_chunk(&arbiter, &chunk, 1);
  }
  end();
}

static void test_searches_after_an_unsuccessful_one_are_short(void) {
  start_with(BIG_PAGES);
  for (uint32_t i = 0; i < BIG_PAGES; i++)
    CHECK(get(i).size > 0);
  CHECK_EQ(get(0).size, 0);
  CHECK_EQ(arbiter.next_page, 0); /* The first search has read all pages. */
  CHECK_EQ(get(0).size, 0);
  /* The second search has ended after 256 pages. */
  CHECK_EQ(arbiter.next_page, 256);
  end();
}

/* The tests from here on let a writer wait for a free chunk.  The wait hooks
 * below replace the clock. */

static uint32_t sleeps[512];
static unsigned sleep_count, begins, ends, free_after;

static void fake_sleep(uint32_t us) {
  /* The arbiter calls this hook only between wait_begin and wait_end. */
  CHECK_EQ(begins, ends + 1);
  sleeps[sleep_count++] = us;
  if (sleep_count == free_after)
    CHECK(reader_free_one(&reader));
}
static void* begin_wait(void) {
  begins++;
  return &begins;
}
static void end_wait(void* token) {
  CHECK(token == &begins);
  ends++;
}

static void start_full(unsigned free_after_sleeps) {
  start();
  arbiter.wait_hooks = (struct st_wait_hooks){begin_wait, end_wait, fake_sleep};
  sleep_count = begins = ends = 0;
  free_after = free_after_sleeps;
  struct st_chunk chunk = get(0);
  st_arbiter_return_chunk(&arbiter, &chunk, 1);
  for (uint32_t i = 1; i < PAGES; i++)
    CHECK(get(i).size > 0);
}

static void test_stall_policy_waits_until_a_chunk_is_free(void) {
  static const uint32_t kSleeps[] = {0,    8,     72,     584,
                                     4680, 37448, 100000, 100000};
  start_full(8);
  struct st_chunk chunk =
      st_arbiter_get_chunk(&arbiter, 1, 99, 0, ST_STALL_THEN_DROP);
  CHECK_EQ(chunk.size, 4088);
  CHECK_EQ(sleep_count, 8);
  CHECK(memcmp(sleeps, kSleeps, sizeof kSleeps) == 0);
  /* The arbiter flushes the sink, so that the service can free the chunks. */
  CHECK_EQ(reader.flushes, 8);
  CHECK_EQ(arbiter.stalls_exhausted, 0);
  end();
}

static void test_stall_policy_gives_up_after_the_maximum(void) {
  start_full(0);
  CHECK_EQ(st_arbiter_get_chunk(&arbiter, 1, 99, 0, ST_STALL).size, 0);
  CHECK_EQ(sleep_count, 300);
  CHECK_EQ(ends, 300);
  CHECK_EQ(arbiter.stalls_exhausted, 1);
  end();
}

/* Makes nanosleep() return at once in the calling thread. */
static void refuse_nanosleep(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void* stall_briefly(void* unused) {
  refuse_nanosleep();
  uint64_t begin = now_us();
  errno = 0;
  CHECK_EQ(st_arbiter_get_chunk(&arbiter, 1, 99, 0, ST_STALL_BRIEFLY).size, 0);
  CHECK(now_us() - begin >= 42000);
  CHECK_EQ(errno,
           0); /* That of the program, which has only written an event. */
  return unused;
}

/* `stretto record --io-waits` records calls of nanosleep() as waits of the
 * program. */
static void test_stalled_writer_sleeps_without_nanosleep(void) {
  start_full(0);
  arbiter.wait_hooks.sleep_us = NULL;
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, stall_briefly, NULL), 0);
  pthread_join(thread, NULL);
  end();
}

static void test_writer_ids_are_unique(void) {
  static uint8_t seen[ST_MAX_WRITER_ID + 1];
  memset(seen, 0, sizeof seen);
  start();
  uint32_t chunk_id = 7;
  for (unsigned i = 1; i <= ST_MAX_WRITER_ID; i++) {
    uint16_t id = st_arbiter_add_writer(&arbiter, 3, &chunk_id);
    CHECK_EQ(id, i);
    CHECK_EQ(chunk_id, 0);
    CHECK(!seen[id]++);
  }
  CHECK_EQ(st_arbiter_add_writer(&arbiter, 3, &chunk_id), 0);
  CHECK_EQ(reader.registered, ST_MAX_WRITER_ID);
  st_arbiter_remove_writer(&arbiter, 1234, 55);
  CHECK_EQ(reader.unregistered, 1);
  CHECK_EQ(st_arbiter_add_writer(&arbiter, 3, &chunk_id), 1234);
  /* The new writer's chunk ids continue those of the writer that had this id
   * before. */
  CHECK_EQ(chunk_id, 55);
  end();
}

static void test_writer_ids_are_round_robin(void) {
  start();
  uint32_t chunk_id;
  for (unsigned i = 1; i <= 3; i++) {
    CHECK_EQ(st_arbiter_add_writer(&arbiter, 3, &chunk_id), i);
    CHECK_EQ(arbiter.live_writers, 1);
    st_arbiter_remove_writer(&arbiter, (uint16_t)i, 0);
    /* A second removal of the same writer id has no effect. */
    st_arbiter_remove_writer(&arbiter, (uint16_t)i, 0);
    CHECK_EQ(arbiter.live_writers, 0);
  }
  end();
}

static void ready(struct st_patch* p) {
  memcpy(p->size_field, "\x81\x80\x80", 4);
}

static void test_ready_patches_are_sent_from_the_front_of_the_list(void) {
  start();
  const uint16_t needs = ST_CHUNK_NEEDS_PATCHING << ST_PACKETS_FLAGS_SHIFT;
  for (uint32_t id = 0; id < 2; id++) {
    struct st_chunk c =
        st_arbiter_get_chunk(&arbiter, 1, id, needs | 1, ST_DROP);
    st_arbiter_return_chunk(&arbiter, &c, 3);
  }
  struct st_patch_list list = {0};
  struct st_patch* p[4];
  for (uint16_t i = 0; i < 4; i++)
    p[i] = st_patch_list_add(&list, i / 3, (uint16_t)(i * 8));
  ready(p[1]);
  ready(p[3]);
  st_arbiter_send_patches(&arbiter, 1, 3, &list);
  /* The first patch in the list is not ready, so no patch is sent. */
  CHECK_EQ(reader.patches, 0);
  ready(p[0]);
  st_arbiter_send_patches(&arbiter, 1, 3, &list);
  CHECK_EQ(reader.patches, 2);
  CHECK(reader.last_has_more); /* The patch p[2] belongs to the same chunk. */
  CHECK(list.front == p[2]);
  ready(p[2]);
  st_arbiter_send_patches(&arbiter, 1, 3, &list);
  CHECK_EQ(reader.patches, 4);
  CHECK(!reader.last_has_more);
  CHECK(!list.front);
  for (uint32_t id = 0; id < 2; id++)
    CHECK_EQ(reader_find(&reader, 1, id)->packets, 1);
  end();
}

static void use_in_child(const struct st_chunk* chunk) {
  uint32_t chunk_id;
  st_arbiter_disable(&arbiter);
  CHECK_EQ(get(1).size, 0);
  CHECK_EQ(st_arbiter_get_chunk(&arbiter, 1, 1, 0, ST_STALL).size, 0);
  CHECK_EQ(st_arbiter_add_writer(&arbiter, 1, &chunk_id), 0);
  st_arbiter_return_chunk(&arbiter, chunk, 1);
  st_arbiter_remove_writer(&arbiter, 1, 1);
  CHECK_EQ(reader.count + reader.registered + reader.unregistered, 0);
  CHECK_EQ(st_bitmap_state(st_page_bitmap(&arbiter.shm, chunk->page), 0),
           ST_CHUNK_BEING_WRITTEN);
  CHECK_EQ(pthread_mutex_trylock(&arbiter.mutex), 0);
}

static void test_arbiter_is_disabled_in_a_forked_child(void) {
  start();
  struct st_chunk chunk = get(0);
  struct st_fork_entry entry = {
      .mutexes = {&arbiter.loss_mutex, &arbiter.mutex}};
  st_fork_register(&entry);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    use_in_child(&chunk);
    _exit(0);
  }
  st_fork_unregister(&entry);
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  end();
}

static void test_chunk_on_a_corrupted_page_is_counted_as_lost(void) {
  start();
  struct st_chunk chunk = get(0);
  memset(memory, 0, PAGE);
  st_arbiter_return_chunk(&arbiter, &chunk, 1);
  CHECK_EQ(reader.count, 0);
  CHECK_EQ(arbiter.chunks_lost, 1);
  end();
}

int main(void) {
  RUN(test_returned_chunks_reach_the_sink);
  RUN(test_layout_gets_finer_with_more_live_writers);
  RUN(test_many_writers_are_crowded_when_an_eighth_of_all_chunks_is_taken);
  RUN(test_few_writers_are_never_crowded);
  RUN(test_partitioned_pages_keep_their_layout);
  RUN(test_drop_policy_gives_up_without_a_stall);
  RUN(test_search_finds_the_only_free_chunk);
  RUN(test_page_that_is_free_again_is_used_next);
  RUN(test_searches_after_an_unsuccessful_one_are_short);
  RUN(test_stall_policy_waits_until_a_chunk_is_free);
  RUN(test_stall_policy_gives_up_after_the_maximum);
  RUN(test_stalled_writer_sleeps_without_nanosleep);
  RUN(test_writer_ids_are_unique);
  RUN(test_writer_ids_are_round_robin);
  RUN(test_ready_patches_are_sent_from_the_front_of_the_list);
  RUN(test_arbiter_is_disabled_in_a_forked_child);
  RUN(test_chunk_on_a_corrupted_page_is_counted_as_lost);
  return 0;
}
