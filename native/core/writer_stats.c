#include "writer_stats.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

const uint32_t st_histogram_thresholds[ST_HISTOGRAM_BUCKETS - 1] = {
    8, 32, 128, 512, 1024, 2048, 4096, 8192, 12288, 16384,
};

/* Returns the hash bucket of a key, from the high bits of key times golden
 * ratio, which are evenly spread. */
static uint32_t* bucket_of(const struct st_writer_stats* s, uint32_t key) {
  unsigned shift = (unsigned)__builtin_clz(s->capacity) + 1;
  return &s->buckets[key * 0x9E3779B1u >> shift];
}

static void link_writer(struct st_writer_stats* s, uint32_t index) {
  uint32_t* bucket = bucket_of(s, s->writers[index].key);
  s->writers[index].hash_next = *bucket;
  *bucket = index + 1;
}

static bool set_capacity(struct st_writer_stats* s, uint32_t capacity) {
  uint32_t* buckets = calloc(capacity, sizeof *buckets);
  if (!buckets)
    return false;
  free(s->buckets);
  s->buckets = buckets;
  s->capacity = capacity;
  for (uint32_t i = 0; i < s->count; i++)
    link_writer(s, i);
  return true;
}

static bool set_room(struct st_writer_stats* s, uint32_t room) {
  struct st_writer_histogram* writers =
      realloc(s->writers, room * sizeof *writers);
  if (!writers)
    return false;
  s->writers = writers;
  s->room = room;
  return true;
}

static bool make_room(struct st_writer_stats* s) {
  uint32_t capacity = s->capacity ? 2 * s->capacity : FIRST_CAPACITY;
  if (s->count == s->room &&
      !set_room(s, s->room + s->room / 4 + FIRST_CAPACITY))
    return false;
  return s->count < s->capacity || set_capacity(s, capacity);
}

static struct st_writer_histogram* add_writer(struct st_writer_stats* s,
                                              uint32_t key) {
  if (s->count == ST_MAX_WRITER_STATS || !make_room(s))
    return NULL;
  struct st_writer_histogram* w = &s->writers[s->count];
  memset(w, 0, sizeof *w);
  w->key = key;
  link_writer(s, s->count++);
  return w;
}

struct st_writer_histogram* st_writer_stats_find(struct st_writer_stats* s,
                                                 uint32_t key) {
  if (s->latest < s->count && s->writers[s->latest].key == key)
    return &s->writers[s->latest];
  uint32_t i = s->capacity ? *bucket_of(s, key) : 0;
  while (i && s->writers[i - 1].key != key)
    i = s->writers[i - 1].hash_next;
  struct st_writer_histogram* w = i ? &s->writers[i - 1] : add_writer(s, key);
  if (w)
    s->latest = (uint32_t)(w - s->writers);
  return w;
}

static void count(struct st_histogram* h, uint32_t payload_size) {
  uint32_t i = 0;
  while (i < ST_HISTOGRAM_BUCKETS - 1 &&
         payload_size > st_histogram_thresholds[i])
    i++;
  h->counts[i]++;
  h->sums[i] += payload_size;
}

void st_writer_stats_add(struct st_writer_stats* s, uint32_t key,
                         uint32_t payload_size) {
  struct st_writer_histogram* w = st_writer_stats_find(s, key);
  if (!w)
    return;
  if (!w->histogram && !w->only) {
    w->only = payload_size + 1;
    return;
  }
  if (!w->histogram) {
    w->histogram = calloc(1, sizeof *w->histogram);
    if (!w->histogram)
      return;
    count(w->histogram, w->only - 1);
  }
  count(w->histogram, payload_size);
}

struct st_histogram st_writer_histogram_of(
    const struct st_writer_histogram* w) {
  struct st_histogram h = {0};
  if (w->histogram)
    return *w->histogram;
  if (w->only)
    count(&h, w->only - 1);
  return h;
}

static bool copy_histogram(struct st_writer_histogram* w) {
  if (!w->histogram)
    return true;
  struct st_histogram* copy = malloc(sizeof *copy);
  if (copy)
    *copy = *w->histogram;
  w->histogram = copy;
  return copy != NULL;
}

bool st_writer_stats_copy(struct st_writer_stats* to,
                          const struct st_writer_stats* from) {
  if (!from->count)
    return true;
  if (!set_room(to, from->count) || !set_capacity(to, from->capacity))
    return false;
  bool complete = true;
  for (uint32_t i = 0; i < from->count; i++) {
    to->writers[i] = from->writers[i];
    complete = copy_histogram(&to->writers[i]) && complete;
    link_writer(to, i);
  }
  to->count = from->count;
  return complete;
}

void st_writer_stats_destroy(struct st_writer_stats* s) {
  for (uint32_t i = 0; i < s->count; i++)
    free(s->writers[i].histogram);
  free(s->writers);
  free(s->buckets);
  *s = (struct st_writer_stats){0};
}
