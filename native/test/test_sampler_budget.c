/* Tests of the CPU budget of samplers, with a clock of their own. */
#include "probes/sampler_budget.h"

#include "check.h"

static const uint64_t kSecond = 1000000000;

/* Reviews a second in which the samples took a part of the CPU, in per cent. */
static bool second(struct st_sampler_budget* b, uint64_t percent) {
  return st_sampler_budget_review(b, kSecond, kSecond / 100 * percent);
}

static void samples_within_the_budget_keep_their_period(void) {
  struct st_sampler_budget b = {0};
  for (uint64_t i = 0; i < 100; i++)
    CHECK(!second(&b, i % 26));
  CHECK_EQ(b.doublings, 0);
}

static void period_is_doubled_until_the_samples_are_within_the_budget(void) {
  struct st_sampler_budget b = {0};
  CHECK(second(&b, 26));
  CHECK_EQ(b.doublings, 1);
  CHECK(second(&b, 90));
  CHECK_EQ(b.doublings, 3);
  CHECK(!second(&b, 25));
  CHECK_EQ(b.doublings, 3);
}

static void period_has_a_limit(void) {
  struct st_sampler_budget b = {0};
  for (int i = 0; i < 20; i++)
    second(&b, 100);
  CHECK_EQ(b.doublings, ST_SAMPLER_MAX_DOUBLINGS);
  CHECK(!second(&b, 100));
}

static void short_times_are_reviewed_together(void) {
  struct st_sampler_budget b = {0};
  CHECK(!st_sampler_budget_review(&b, kSecond / 10, kSecond / 10));
  CHECK_EQ(b.doublings, 0);
  CHECK(!st_sampler_budget_review(&b, kSecond - kSecond / 10, kSecond / 10));
  CHECK_EQ(b.doublings, 0);
}

static void period_is_halved_after_a_calm_time(void) {
  struct st_sampler_budget b = {0};
  second(&b, 90);
  CHECK_EQ(b.doublings, 2);
  for (int i = 1; i < ST_SAMPLER_CALM_REVIEWS; i++)
    CHECK(!second(&b, 5));
  CHECK(second(&b, 5));
  CHECK_EQ(b.doublings, 1);
  for (int i = 1; i < ST_SAMPLER_CALM_REVIEWS; i++)
    CHECK(!second(&b, 9));
  CHECK(second(&b, 9));
  CHECK_EQ(b.doublings, 0);
}

static void period_stays_if_half_of_it_would_take_too_much(void) {
  struct st_sampler_budget b = {0};
  second(&b, 90);
  for (int i = 0; i < 100; i++)
    CHECK(!second(&b, i % 5 ? 5 : 20));
  CHECK_EQ(b.doublings, 2);
}

int main(void) {
  RUN(samples_within_the_budget_keep_their_period);
  RUN(period_is_doubled_until_the_samples_are_within_the_budget);
  RUN(period_has_a_limit);
  RUN(short_times_are_reviewed_together);
  RUN(period_is_halved_after_a_calm_time);
  RUN(period_stays_if_half_of_it_would_take_too_much);
  return 0;
}
