/* Sampler budget: lets a sampler use at most a quarter of a CPU.
 *
 * The sampler samples with a period that is the wanted one times a power of
 * two.  From time to time, the CPU time that the samples have taken is
 * reviewed:
 *
 *   more than the budget                        the period is doubled, as often
 *                                               as needed
 *   so little, for some reviews in a row, that  the period is halved
 *   twice as much is well within the budget
 *
 *   struct st_sampler_budget budget = {0};
 *   if (st_sampler_budget_review(&budget, elapsed_ns, cpu_ns))
 *     period_ns = wanted_ns << budget.doublings;
 *
 * It reads no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
  /* The budget is this part of a CPU. */
  ST_SAMPLER_SHARE = 4,
  ST_SAMPLER_MAX_DOUBLINGS = 10,
  /* The number of reviews after which the period may be halved. */
  ST_SAMPLER_CALM_REVIEWS = 10,
};

/* A zeroed struct has the wanted period. */
struct st_sampler_budget {
  uint32_t doublings;
  uint32_t calm_reviews;
  /* The times since the last review. */
  uint64_t elapsed_ns, cpu_ns;
};

/* Adds a time, and the CPU time of the samples in it.  Reviews them if enough
 * time has passed since the last review.  Returns whether `doublings` has
 * changed. */
bool st_sampler_budget_review(struct st_sampler_budget* b, uint64_t elapsed_ns,
                              uint64_t cpu_ns);
