/* Tests of the heap profile: totals, the maximum, limits, and several
 * threads. */
#include "probes/heap_profile.h"

#include <string.h>

#include "check.h"
#include "probes/heap_budget.h"
#include "random.h"

static struct st_heap_profile profile = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct st_heap_profile* fresh(void) {
  st_heap_profile_clear(&profile);
  st_heap_profile_init(&profile);
  return &profile;
}

static uint64_t address_of(uint64_t number) {
  return 0x7f0000000000u + number * 16;
}

static bool is_sampled(const struct st_heap_profile* p, uint64_t address) {
  return st_heap_is_sampled(p, (const void*)(uintptr_t)address);
}

static void frees_are_followed(void) {
  struct st_heap_profile* p = fresh();
  struct st_heap_block block;
  CHECK(st_heap_add(p, 1, 5, address_of(1), 4096));
  CHECK(st_heap_add(p, 1, 5, address_of(2), 8192));
  CHECK(is_sampled(p, address_of(1)));
  CHECK(st_heap_remove(p, address_of(1), &block));
  CHECK(!st_heap_remove(p, address_of(1), &block));
  CHECK(!st_heap_remove(p, address_of(3), &block));
  CHECK(!is_sampled(p, address_of(1)));
  const struct st_heap_stack* s = &p->heaps[1].stacks[5];
  CHECK_EQ(s->allocated.bytes, 12288);
  CHECK_EQ(s->allocated.samples, 2);
  CHECK_EQ(s->freed.bytes, 4096);
  CHECK_EQ(s->freed.samples, 1);
  CHECK_EQ(p->heaps[1].live, 8192);
}

static void missed_free_is_noticed_at_the_next_allocation(void) {
  struct st_heap_profile* p = fresh();
  st_heap_add(p, 0, 1, address_of(1), 100);
  st_heap_add(p, 2, 2, address_of(1), 200);
  CHECK_EQ(p->heaps[0].stacks[1].freed.bytes, 100);
  CHECK_EQ(p->heaps[0].live, 0);
  CHECK_EQ(p->heaps[2].live, 200);
}

static void block_that_was_not_freed_is_put_back(void) {
  struct st_heap_profile* p = fresh();
  struct st_heap_block block;
  st_heap_add(p, 0, 1, address_of(1), 100);
  CHECK(st_heap_remove(p, address_of(1), &block));
  st_heap_put_back(p, &block);
  CHECK_EQ(p->heaps[0].live, 100);
  CHECK_EQ(p->heaps[0].stacks[1].freed.bytes, 0);
  CHECK(is_sampled(p, address_of(1)));
  CHECK(st_heap_remove(p, address_of(1), &block));
}

static void block_of_an_earlier_profile_is_not_put_back(void) {
  struct st_heap_profile* p = fresh();
  struct st_heap_block block;
  st_heap_add(p, 0, 1000, address_of(1), 100);
  CHECK(st_heap_remove(p, address_of(1), &block));
  p = fresh();
  st_heap_put_back(p, &block);
  CHECK_EQ(p->live.count, 0);
  st_heap_add(p, 0, 1000, address_of(2), 100);
  st_heap_put_back(p, &block);
  CHECK_EQ(p->live.count, 1);
}

static void dump_has_what_changed(void) {
  struct st_heap_profile* p = fresh();
  struct st_heap* heap = &p->heaps[0];
  st_heap_add(p, 0, 3, address_of(1), 1);
  st_heap_add(p, 0, 9, address_of(2), 1);
  CHECK_EQ(st_heap_next_changed(heap, 1), 3);
  CHECK_EQ(st_heap_next_changed(heap, 4), 9);
  CHECK_EQ(st_heap_next_changed(heap, 10), 0);
  st_heap_add(p, 0, 9, address_of(3), 1);
  CHECK_EQ(st_heap_next_changed(heap, 1), 9);
  CHECK_EQ(st_heap_next_changed(heap, 1), 0);
  st_heap_dump_all(heap);
  CHECK_EQ(st_heap_next_changed(heap, 1), 3);
  CHECK_EQ(st_heap_next_changed(heap, 4), 9);
}

enum { STACKS = 40, BLOCKS = 500, STEPS = 50000 };

/* Compares the lazily kept maxima with copies made at each new maximum. */
static void maximum_agrees_with_copies(void) {
  struct st_heap_profile* p = fresh();
  static uint64_t live[STACKS], at_max[STACKS];
  static struct {
    uint32_t stack;
    uint64_t weight;
  } blocks[BLOCKS];
  uint64_t random = 3, total = 0, max = 0;
  for (int step = 0; step < STEPS; step++) {
    uint64_t i = random_below(&random, BLOCKS);
    struct st_heap_block block;
    if (blocks[i].weight) {
      CHECK(st_heap_remove(p, address_of(i), &block));
      live[blocks[i].stack] -= blocks[i].weight;
      total -= blocks[i].weight;
      blocks[i].weight = 0;
    } else {
      blocks[i].stack = 1 + (uint32_t)random_below(&random, STACKS - 1);
      blocks[i].weight = 1 + random_below(&random, 1000);
      CHECK(
          st_heap_add(p, 1, blocks[i].stack, address_of(i), blocks[i].weight));
      live[blocks[i].stack] += blocks[i].weight;
      total += blocks[i].weight;
    }
    if (total > max) {
      max = total;
      memcpy(at_max, live, sizeof live);
    }
  }
  CHECK_EQ(p->heaps[1].max, max);
  CHECK_EQ(p->heaps[1].live, total);
  for (uint32_t i = 1; i < STACKS; i++) {
    const struct st_heap_stack* s = &p->heaps[1].stacks[i];
    CHECK_EQ(s->allocated.bytes - s->freed.bytes, live[i]);
    CHECK_EQ(st_heap_at_max(&p->heaps[1], s).bytes, at_max[i]);
  }
}

static void samples_without_room_are_dropped_and_counted(void) {
  struct st_heap_profile* p = fresh();
  p->live.limit = 10;
  for (uint64_t i = 1; i <= 15; i++)
    CHECK_EQ(st_heap_add(p, 0, 1, address_of(i), 1), i <= 10);
  CHECK_EQ(p->drops.live_full, 5);
  CHECK_EQ(p->heaps[0].stacks[1].allocated.samples, 10);
  CHECK(!is_sampled(p, address_of(11)));
}

static void great_weights_and_stacks_fit(void) {
  struct st_heap_profile* p = fresh();
  struct st_heap_block block;
  uint64_t weight = (uint64_t)1 << 41;
  CHECK(st_heap_add(p, 2, ST_HEAP_MAX_STACK, address_of(1), weight));
  CHECK_EQ(p->heaps[2].live, weight);
  CHECK(st_heap_remove(p, address_of(1), &block));
  CHECK_EQ(p->heaps[2].live, 0);
  CHECK_EQ(p->heaps[2].stacks[ST_HEAP_MAX_STACK].freed.bytes, weight);
}

enum { THREADS = 4, ROUNDS = 20000, OWN = 64 };

/* Allocates and frees its own addresses, as the hooks of allocators do. */
static void* allocate(void* argument) {
  uint64_t thread = (uint64_t)(uintptr_t)argument, random = thread + 1;
  bool live[OWN] = {0};
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t own = random_below(&random, OWN);
    uint64_t address = address_of(thread * OWN + own);
    struct st_heap_block block;
    /* An address that is not sampled may share its counter. */
    CHECK(!live[own] || is_sampled(&profile, address));
    pthread_mutex_lock(&profile.mutex);
    if (live[own])
      CHECK(st_heap_remove(&profile, address, &block));
    else
      CHECK(st_heap_add(&profile, 0, (uint32_t)thread, address, 10));
    pthread_mutex_unlock(&profile.mutex);
    live[own] = !live[own];
  }
  uint64_t count = 0;
  for (int i = 0; i < OWN; i++)
    count += live[i];
  return (void*)(uintptr_t)count;
}

static void threads_share_a_profile(void) {
  struct st_heap_profile* p = fresh();
  pthread_t threads[THREADS];
  uint64_t live = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, allocate, (void*)(i + 1));
  for (int i = 0; i < THREADS; i++) {
    void* count;
    pthread_join(threads[i], &count);
    live += (uintptr_t)count;
  }
  CHECK_EQ(p->heaps[0].live, live * 10);
  CHECK_EQ(p->live.count, live);
}

/* Runs a window whose samples take `duration` ns each; returns whether their
 * share is above the limit. */
static bool is_over(struct st_heap_budget* b, uint64_t now, uint64_t duration) {
  bool complete = false;
  for (int i = 0; !complete; i++) {
    CHECK(i < 2 * ST_BUDGET_WINDOW);
    if (st_heap_budget_is_timed(b))
      complete = st_heap_budget_add(b, duration);
    CHECK(!complete || i + ST_BUDGET_STEP >= ST_BUDGET_WINDOW);
  }
  return st_heap_budget_is_over(b, now);
}

static void budget_compares_the_share_of_each_window(void) {
  struct st_heap_budget b = {.limit = 50};
  const uint64_t ms = 1000000;
  is_over(&b, 100 * ms, 0);
  /* 256 samples of 8 us are 2 % of 100 ms, 4 % of 50 ms, and so on. */
  CHECK(!is_over(&b, 200 * ms, 8000));
  CHECK(!is_over(&b, 250 * ms, 8000));
  CHECK(is_over(&b, 300 * ms, 12000));
  CHECK(!is_over(&b, 400 * ms, 12000));
  /* A window below 50 ms goes on: its samples count in the next part. */
  CHECK(!is_over(&b, 430 * ms, 15000));
  CHECK(is_over(&b, 500 * ms, 15000));
  /* One interrupted sample is not the cost of all. */
  CHECK(!is_over(&b, 700 * ms, 100 * ms));
  struct st_heap_budget none = {0};
  CHECK(!st_heap_budget_is_timed(&none));
}

int main(void) {
  RUN(frees_are_followed);
  RUN(missed_free_is_noticed_at_the_next_allocation);
  RUN(block_that_was_not_freed_is_put_back);
  RUN(block_of_an_earlier_profile_is_not_put_back);
  RUN(dump_has_what_changed);
  RUN(maximum_agrees_with_copies);
  RUN(samples_without_room_are_dropped_and_counted);
  RUN(great_weights_and_stacks_fit);
  RUN(threads_share_a_profile);
  RUN(budget_compares_the_share_of_each_window);
  st_heap_profile_clear(&profile);
  return 0;
}
