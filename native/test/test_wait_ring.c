#include "wait_ring.h"

#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { PASSED = 100000 };

static struct st_wait_ring ring;

static struct st_ended_wait wait_of(uint64_t number, uint64_t ns) {
  return (struct st_ended_wait){number, number + ns, number + 1, number + 2};
}

static void add(uint64_t number, uint64_t ns) {
  const struct st_ended_wait wait = wait_of(number, ns);
  st_wait_ring_add(&ring, &wait);
}

static void test_waits_are_taken_in_their_order(void) {
  struct st_ended_wait wait;
  CHECK(!st_wait_ring_take(&ring, &wait));
  for (uint64_t i = 0; i < 3; i++)
    add(i, ST_MIN_RING_WAIT_NS);
  for (uint64_t i = 0; i < 3; i++) {
    CHECK(st_wait_ring_take(&ring, &wait));
    CHECK(wait.begin == i && wait.end == i + ST_MIN_RING_WAIT_NS);
    CHECK(wait.holder == i + 1 && wait.thread == i + 2);
  }
  CHECK(!st_wait_ring_has_any(&ring));
}

static void test_short_waits_are_counted(void) {
  add(1, ST_MIN_RING_WAIT_NS - 1);
  add(1, 7);
  CHECK(!st_wait_ring_has_any(&ring));
  CHECK(ring.short_waits == 2 && ring.short_ns == ST_MIN_RING_WAIT_NS + 6);
}

static void test_full_ring_counts_what_it_drops(void) {
  struct st_ended_wait wait;
  for (uint64_t i = 0; i < ST_RING_WAITS + 2; i++)
    add(i, ST_MIN_RING_WAIT_NS);
  CHECK(ring.lost == 2);
  CHECK(st_wait_ring_take(&ring, &wait) && wait.begin == 0);
  add(9, ST_MIN_RING_WAIT_NS);
  CHECK(ring.lost == 2);
  st_wait_ring_clear(&ring);
  CHECK(!st_wait_ring_has_any(&ring) && !ring.lost && !ring.short_waits);
}

static void* add_all(void* unused) {
  (void)unused;
  for (uint64_t i = 0; i < PASSED; i++) {
    while (ring.added - ring.taken == ST_RING_WAITS)
      sched_yield();
    add(i, ST_MIN_RING_WAIT_NS + i);
  }
  return NULL;
}

static void test_two_threads_pass_all_waits(void) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, add_all, NULL));
  for (uint64_t i = 0; i < PASSED; i++) {
    struct st_ended_wait wait;
    while (!st_wait_ring_take(&ring, &wait))
      sched_yield();
    CHECK(wait.begin == i && wait.end == 2 * i + ST_MIN_RING_WAIT_NS);
  }
  pthread_join(thread, NULL);
  CHECK(!ring.lost);
}

int main(void) {
  test_waits_are_taken_in_their_order();
  test_short_waits_are_counted();
  test_full_ring_counts_what_it_drops();
  test_two_threads_pass_all_waits();
  return 0;
}
