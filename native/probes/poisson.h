/* Poisson: chooses the bytes of a stream of allocations that are sampled.
 *
 * Each allocated byte is sampled with the probability 1 / interval,
 * independently of all others.  The gaps between sampled bytes then have a
 * geometric distribution, so one random number per sampled byte is enough:
 *
 *   allocations   |--16--|----48----|--16--|--------96--------|
 *   sampled bytes            *   *                 *
 *   weights       0      2 intervals  0      1 interval
 *
 * An allocation counts as (sampled bytes in it) x interval.  The expected value
 * is its size, so sums of weights are unbiased estimates of sums of sizes.  An
 * allocation of at least one interval counts as what it is, without chance.
 *
 * The relative standard error of an estimate of n bytes is about
 * sqrt(interval / n).
 *
 * Each thread has a generator of its own, because gaps have no memory: it does
 * not matter on which thread the next sampled byte is.  A generator that is all
 * zeros is valid: it draws its first gap when it is first asked.
 *
 * Source of the method: Perfetto's docs/design-docs/heapprofd-sampling.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_poisson {
  /* The number of bytes up to the next sampled byte. */
  int64_t left;
  /* The smallest size that st_poisson_may_hit() always reports. */
  uint64_t large;
  /* The interval for which `left` was drawn; 0 before the first draw. */
  uint64_t interval;
  uint64_t random; /* The state of the random numbers; never 0 after a draw. */
};

enum {
  /* Sizes above this are always reported by st_poisson_may_hit(). */
  ST_POISSON_LARGE = 512,
};

/* Whether an allocation may be sampled: if so, the caller has to call
 * st_poisson_weight().  This is the fast path of each allocation. */
static inline bool st_poisson_may_hit(struct st_poisson* p, size_t size) {
  if (size >= p->large)
    return true;
  p->left -= (int64_t)size;
  return p->left <= 0;
}

/* Returns the number of bytes that an allocation counts as; 0 if it is not
 * sampled.  Called after st_poisson_may_hit() returned true.  `interval` is
 * used from the next gap on.  `seed` seeds a generator whose `random` is 0. */
uint64_t st_poisson_weight(struct st_poisson* p, size_t size, uint64_t interval,
                           uint64_t seed);

/* Forgets the gap: the next allocation draws a new one. */
void st_poisson_reset(struct st_poisson* p);
