#include "sample_hits.h"

#include <stdlib.h>

void st_sample_hits_add(struct st_sample_hits* h, uint32_t utid,
                        uint32_t callsite, struct st_sample_period period) {
  struct st_key key = {(uint64_t)utid << 32 | callsite, period.period,
                       period.counter};
  uint32_t number = st_key_number(&h->keys, key);
  if (number == h->samples.size)
    *ST_PUSH(&h->samples) = 0;
  h->samples.data[number]++;
}

uint32_t st_sample_hits_count(const struct st_sample_hits* h) {
  return (uint32_t)h->samples.size;
}

struct st_sample_hit st_sample_hits_at(const struct st_sample_hits* h,
                                       uint32_t number) {
  struct st_key key = h->keys.keys.data[number];
  return (struct st_sample_hit){
      .utid = (uint32_t)(key.a >> 32),
      .callsite = (uint32_t)key.a,
      .period = {.period = key.b, .counter = (st_string)key.c},
      .samples = h->samples.data[number]};
}

void st_sample_hits_free(struct st_sample_hits* h) {
  st_keys_free(&h->keys);
  free(h->samples.data);
}
