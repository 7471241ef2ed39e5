/* Tests of the sampling of bytes: estimates have the right mean and deviation,
 * with fixed seeds. */
#include "probes/poisson.h"

#include <math.h>

#include "check.h"

/* Returns the estimate of the total size of `count` allocations. */
static uint64_t estimate(struct st_poisson* p, uint64_t interval, size_t size,
                         uint32_t count) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++)
    if (st_poisson_may_hit(p, size))
      sum += st_poisson_weight(p, size, interval, 1);
  return sum;
}

/* Checks that the error is below 4 standard deviations: for small allocations
 * the estimate of n bytes has the variance n x interval. */
static void check_estimate(uint64_t interval, size_t size, uint32_t count) {
  struct st_poisson p = {0};
  double exact = (double)size * count;
  double error = (double)estimate(&p, interval, size, count) - exact;
  CHECK(fabs(error) < 4 * sqrt(exact * (double)interval));
}

static void estimates_have_the_right_mean(void) {
  check_estimate(65536, 16, 20000000);
  check_estimate(65536, 600, 1000000);
  check_estimate(4096, 56, 1000000);
  check_estimate(4096, 4095, 100000);
  check_estimate(600, 599, 100000);
  check_estimate(100, 99, 100000);
  check_estimate(2, 1, 1000000);
}

static void allocations_of_an_interval_or_more_are_exact(void) {
  struct st_poisson p = {0};
  CHECK_EQ(estimate(&p, 4096, 4096, 1000), 4096000);
  CHECK_EQ(estimate(&p, 4096, 1 << 20, 10), 10 << 20);
  struct st_poisson every = {0};
  CHECK_EQ(estimate(&every, 1, 1, 1000), 1000);
  CHECK_EQ(estimate(&every, 1, 0, 1000), 0);
}

static void large_allocations_leave_the_gap_as_it_is(void) {
  struct st_poisson p = {0};
  estimate(&p, 4096, 8, 1);
  int64_t left = p.left;
  estimate(&p, 4096, 5000, 10);
  CHECK_EQ(p.left, left);
}

/* The deviation of many estimates is that of the formula: neither too large,
 * nor zero. */
static void estimates_have_the_right_deviation(void) {
  enum { RUNS = 2000, COUNT = 1000, SIZE = 100, INTERVAL = 1000 };
  double squares = 0, exact = (double)SIZE * COUNT;
  for (uint64_t seed = 1; seed <= RUNS; seed++) {
    struct st_poisson p = {0};
    uint64_t sum = 0;
    for (int i = 0; i < COUNT; i++)
      if (st_poisson_may_hit(&p, SIZE))
        sum += st_poisson_weight(&p, SIZE, INTERVAL, seed);
    squares += pow((double)sum - exact, 2);
  }
  double ratio = sqrt(squares / RUNS) / sqrt(exact * INTERVAL);
  CHECK(ratio > 0.9 && ratio < 1.1);
}

/* A gap that was drawn for one interval counts as that interval. */
static void new_interval_keeps_the_mean(void) {
  struct st_poisson p = {0};
  double sum = 0;
  enum { ROUNDS = 20000, COUNT = 10, SIZE = 64 };
  for (int i = 0; i < ROUNDS; i++)
    sum += (double)estimate(&p, i % 2 ? 512 : 4096, SIZE, COUNT);
  double exact = (double)ROUNDS * COUNT * SIZE;
  CHECK(fabs(sum - exact) < 4 * sqrt(exact * 4096));
}

static void reset_generator_takes_the_new_interval_at_once(void) {
  struct st_poisson p = {0};
  estimate(&p, (uint64_t)1 << 40, 8, 1);
  st_poisson_reset(&p);
  CHECK_EQ(estimate(&p, 1, 8, 5), 40);
}

int main(void) {
  RUN(estimates_have_the_right_mean);
  RUN(allocations_of_an_interval_or_more_are_exact);
  RUN(large_allocations_leave_the_gap_as_it_is);
  RUN(estimates_have_the_right_deviation);
  RUN(new_interval_keeps_the_mean);
  RUN(reset_generator_takes_the_new_interval_at_once);
  return 0;
}
