#include "probes/sampler_budget.h"

/* In a shorter time, a few long samples would change the period. */
enum { REVIEW_NS = 200 * 1000 * 1000 };

/* Returns how often the period must be doubled until the CPU time is within the
 * budget. */
static uint32_t missing_doublings(const struct st_sampler_budget* b) {
  uint32_t more = 0;
  while (b->doublings + more < ST_SAMPLER_MAX_DOUBLINGS &&
         (b->cpu_ns >> more) > b->elapsed_ns / ST_SAMPLER_SHARE)
    more++;
  return more;
}

/* Returns whether twice the CPU time is less than three quarters of the
 * budget. */
static bool is_calm(const struct st_sampler_budget* b) {
  return b->cpu_ns * 2 < b->elapsed_ns / ST_SAMPLER_SHARE / 4 * 3;
}

bool st_sampler_budget_review(struct st_sampler_budget* b, uint64_t elapsed_ns,
                              uint64_t cpu_ns) {
  b->elapsed_ns += elapsed_ns;
  b->cpu_ns += cpu_ns;
  if (b->elapsed_ns < REVIEW_NS)
    return false;
  uint32_t before = b->doublings;
  b->doublings += missing_doublings(b);
  b->calm_reviews = is_calm(b) ? b->calm_reviews + 1 : 0;
  if (b->doublings && b->calm_reviews >= ST_SAMPLER_CALM_REVIEWS) {
    b->doublings--;
    b->calm_reviews = 0;
  }
  b->elapsed_ns = b->cpu_ns = 0;
  return b->doublings != before;
}
