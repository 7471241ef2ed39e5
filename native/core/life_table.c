#include "life_table.h"

#include <stdlib.h>

#include "identity_cache.h"

#define SECOND_NS UINT64_C(1000000000)

static struct st_life** bucket_of(const struct st_life_table* t,
                                  const void* key) {
  return &t->buckets[st_identity_hash(key) & (t->size - 1)];
}

static void link_life(struct st_life_table* t, struct st_life* life) {
  struct st_life** at = bucket_of(t, life->key);
  life->next = *at;
  *at = life;
}

static bool resize(struct st_life_table* t, size_t size) {
  struct st_life_table old = *t;
  struct st_life** buckets = calloc(size, sizeof *buckets);
  if (!buckets)
    return false;
  t->buckets = buckets;
  t->size = size;
  for (size_t i = 0; i < old.size; i++) {
    for (struct st_life *l = old.buckets[i], *next; l; l = next) {
      next = l->next;
      link_life(t, l);
    }
  }
  free(old.buckets);
  return true;
}

bool st_life_table_init(struct st_life_table* t, uint64_t lives_per_second,
                        bool every) {
  *t = (struct st_life_table){.lives_per_second = lives_per_second,
                              .every = every};
  return resize(t, ST_MIN_LIFE_BUCKETS);
}

struct st_life* st_life_find(const struct st_life_table* t, const void* key) {
  struct st_life* life = t->buckets ? *bucket_of(t, key) : NULL;
  while (life && life->key != key)
    life = life->next;
  return life;
}

struct st_life* st_life_add(struct st_life_table* t, const void* key,
                            uint64_t created) {
  if (!t->buckets || (t->count >= t->size && !resize(t, 2 * t->size)))
    return NULL;
  struct st_life* life = calloc(1, sizeof *life);
  if (!life)
    return NULL;
  life->key = key;
  life->created = created;
  link_life(t, life);
  t->count++;
  return life;
}

void st_life_take(struct st_life_table* t, struct st_life* life) {
  struct st_life** at = bucket_of(t, life->key);
  while (*at != life)
    at = &(*at)->next;
  *at = life->next;
  t->count--;
}

struct st_life* st_life_take_all(struct st_life_table* t) {
  struct st_life* all = NULL;
  for (size_t i = 0; i < t->size; i++) {
    for (struct st_life *l = t->buckets[i], *next; l; l = next) {
      next = l->next;
      l->next = all;
      all = l;
    }
  }
  free(t->buckets);
  *t = (struct st_life_table){0};
  return all;
}

/* Returns whether a new life or lane is allowed now.  `next` is the earliest
 * time of the next one; each one that is allowed moves `next` forward by 1 s /
 * per_second.  `next` is never more than a second in the past. */
static bool may_add(uint64_t* next, uint64_t per_second, uint64_t now) {
  if (*next + SECOND_NS < now)
    *next = now - SECOND_NS;
  if (*next > now)
    return false;
  *next += SECOND_NS / per_second;
  return true;
}

bool st_life_may_add(struct st_life_table* t, uint64_t now) {
  return t->buckets &&
         (t->every || may_add(&t->next_life_ns, t->lives_per_second, now));
}

bool st_life_may_add_lane(struct st_life_table* t, uint64_t now) {
  return t->every || may_add(&t->next_lane_ns, ST_LANES_PER_SECOND, now);
}

bool st_life_needs_look(struct st_life_table* t, const struct st_life* life,
                        uint64_t least, uint64_t now) {
  if (now - life->created < least)
    return false;
  if (!life->lane)
    return st_life_may_add_lane(t, now);
  uint64_t waited = now - life->suspended;
  if (t->every || waited >= ST_LOOK_PERIOD_NS)
    return true;
  if (waited < least && now - life->looked < ST_LOOK_PERIOD_NS)
    return false;
  bool may_look = t->next_look_ns <= now;
  t->waits_left_out += !may_look && waited >= least;
  return may_look;
}

void st_life_looked(struct st_life_table* t, uint64_t begin, uint64_t end) {
  if (t->next_look_ns + SECOND_NS < begin)
    t->next_look_ns = begin - SECOND_NS;
  t->next_look_ns += ST_LOOK_SHARE * (end - begin);
}
