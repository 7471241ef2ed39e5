#include "probes/poisson.h"

#include <math.h>

/* Sources: Steele et al., "Fast splittable pseudorandom number generators"
 * (splitmix64), and Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators" (xorshift64*). */
static uint64_t splitmix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static uint64_t next_random(struct st_poisson* p) {
  uint64_t x = p->random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  p->random = x;
  return x * 0x2545F4914F6CDD1Du;
}

/* Draws a gap of at least 1 from the geometric distribution whose mean is the
 * interval. */
static int64_t draw(struct st_poisson* p) {
  if (p->interval <= 1)
    return 1;
  double uniform = (double)((next_random(p) >> 11) + 1) * 0x1p-53;
  double gap = log(uniform) / log1p(-1.0 / (double)p->interval);
  return 1 + (gap < 0x1p62 ? (int64_t)gap : (int64_t)1 << 62);
}

/* Takes over the interval. */
static void use(struct st_poisson* p, uint64_t interval) {
  p->interval = interval;
  p->large = interval < ST_POISSON_LARGE ? interval : ST_POISSON_LARGE;
}

static void begin(struct st_poisson* p, uint64_t interval) {
  use(p, interval);
  p->left = draw(p);
}

/* Counts the sampled bytes among the last ones, and draws the next gaps. */
static uint64_t count_hits(struct st_poisson* p) {
  uint64_t hits = 0;
  for (; p->left <= 0; hits++)
    p->left += draw(p);
  return hits;
}

uint64_t st_poisson_weight(struct st_poisson* p, size_t size, uint64_t interval,
                           uint64_t seed) {
  if (!p->random)
    p->random = splitmix(seed) | 1;
  if (!p->interval) {
    begin(p, interval);
    p->left -= size < interval ? (int64_t)size : 0;
  } else if (size >= p->large && size < p->interval) {
    p->left -= (int64_t)size;
  }
  uint64_t drawn_for = p->interval;
  if (size >= drawn_for)
    return size;
  uint64_t hits = count_hits(p);
  if (hits && interval != drawn_for)
    begin(p, interval);
  return hits * drawn_for;
}

void st_poisson_reset(struct st_poisson* p) {
  p->interval = p->large = 0;
  p->left = 0;
}
