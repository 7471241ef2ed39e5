/* Sample hits: how many perf samples found a thread in a stack, by the period of
 * the samples.
 *
 * A sampler may change its period while it runs: from there on, its sequence
 * has other defaults.  No table has a column for it.
 */
#pragma once

#include "keys.h"
#include "string_pool.h"

/* The distance of samples: so much of a counter, such as ns of `cpu-clock`. */
struct st_sample_period {
  uint64_t period; /* 0: the trace doesn't tell it. */
  st_string counter;
};

struct st_sample_hit {
  uint32_t utid, callsite;
  struct st_sample_period period;
  uint64_t samples;
};

/* A zeroed struct is empty. */
struct st_sample_hits {
  struct st_keys keys; /* Thread and call site; period; counter. */
  ST_ARRAY(uint64_t) samples;
};

void st_sample_hits_add(struct st_sample_hits* h, uint32_t utid,
                        uint32_t callsite, struct st_sample_period period);
uint32_t st_sample_hits_count(const struct st_sample_hits* h);
struct st_sample_hit st_sample_hits_at(const struct st_sample_hits* h,
                                       uint32_t number);
void st_sample_hits_free(struct st_sample_hits* h);
