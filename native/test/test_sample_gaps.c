/* Tests of the gaps in samples that a trace tells. */
#include "probes/sample_gaps.h"

#include "check.h"

enum { LEAST = 10 };

static const struct st_sample_gaps kNone = {.least = LEAST};

static void short_times_are_no_gaps(void) {
  CHECK(!st_sample_gaps_tell(&kNone, 100, 109));
  CHECK(st_sample_gaps_tell(&kNone, 100, 110));
}

static void a_gap_of_all_threads_is_told_once(void) {
  struct st_sample_gaps g = kNone;
  st_sample_gaps_add(&g, 100, 130);
  CHECK(!st_sample_gaps_tell(&g, 95, 135));
  CHECK(!st_sample_gaps_tell(&g, 105, 120));
}

static void a_thread_without_samples_for_longer_has_a_gap(void) {
  struct st_sample_gaps g = kNone;
  st_sample_gaps_add(&g, 100, 130);
  CHECK(st_sample_gaps_tell(&g, 90, 130));
  CHECK(st_sample_gaps_tell(&g, 100, 140));
  CHECK(st_sample_gaps_tell(&g, 140, 150));
  CHECK(st_sample_gaps_tell(&g, 60, 80));
}

static void gaps_that_follow_each_other_are_one(void) {
  struct st_sample_gaps g = kNone;
  st_sample_gaps_add(&g, 100, 130);
  st_sample_gaps_add(&g, 130, 150);
  st_sample_gaps_add(&g, 155, 180);
  CHECK(!st_sample_gaps_tell(&g, 100, 185));
  st_sample_gaps_add(&g, 200, 210);
  CHECK(st_sample_gaps_tell(&g, 100, 210));
}

int main(void) {
  RUN(short_times_are_no_gaps);
  RUN(a_gap_of_all_threads_is_told_once);
  RUN(a_thread_without_samples_for_longer_has_a_gap);
  RUN(gaps_that_follow_each_other_are_one);
  return 0;
}
