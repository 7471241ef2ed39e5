/* Compares the fast clock with the kernel's clock. */
#include "core/fast_clock.h"

#include <pthread.h>

#include "check.h"

enum { TOLERANCE_NS = 500, READS = 300000, THREADS = 4 };

/* Compares one read of the fast clock with two reads of the kernel's clock,
 * before and after it, with a tolerance.  Preemption only widens the
 * interval. */
static void check_one(uint64_t* previous) {
  uint64_t before = st_boottime_ns();
  uint64_t now = st_fast_now();
  uint64_t after = st_boottime_ns();
  CHECK(now + TOLERANCE_NS >= before);
  CHECK(now <= after + TOLERANCE_NS);
  CHECK(now >= *previous);
  *previous = now;
}

static void fast_clock_follows_the_clock_and_never_decreases(void) {
  uint64_t previous = 0;
  for (int i = 0; i < READS; i++)
    check_one(&previous);
}

static void* run(void* unused) {
  (void)unused;
  uint64_t previous = 0;
  for (int i = 0; i < READS / THREADS; i++)
    check_one(&previous);
  return NULL;
}

static void all_threads_agree_with_the_clock(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, run, NULL) == 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}

static void jump_of_the_counter_ends_the_span(void) {
  uint64_t previous = 0;
  check_one(&previous);
  st_clock_pair.base +=
      /* With this base, the counter seems to have decreased since the last
       * read. */
      st_clock_pair.span * 1000;
  check_one(&previous);
  /* With this base, the counter seems to have jumped ahead since the last
   * read. */
  st_clock_pair.base -= st_clock_pair.span * 1000;
  check_one(&previous);
}

static void new_thread_needs_no_setup(void) {
  st_clock_pair = (struct st_clock_pair){0};
  uint64_t previous = 0;
  check_one(&previous);
}

int main(void) {
  RUN(new_thread_needs_no_setup);
  RUN(fast_clock_follows_the_clock_and_never_decreases);
  RUN(all_threads_agree_with_the_clock);
  RUN(jump_of_the_counter_ends_the_span);
  return 0;
}
