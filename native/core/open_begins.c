#include "open_begins.h"

#include <stdlib.h>

static struct st_open_track** find(struct st_open_tracks* t, uint64_t uuid) {
  struct st_open_track** at = &t->buckets[(uuid * 0x9E3779B97F4A7C15u) >> 54];
  while (*at && (*at)->uuid != uuid)
    at = &(*at)->next;
  return at;
}

static bool is_of(const struct st_open_begins* b, uint32_t generation) {
  return generation && b->generation == generation;
}

static bool is_open(const struct st_open_track* track,
                    const struct st_begin_sessions* now) {
  for (int i = 0; i < ST_BEGIN_SESSIONS; i++) {
    const struct st_open_begins* b = &track->sessions[i];
    if (b->depth && is_of(b, now->generations[i]))
      return true;
  }
  return false;
}

static void drop(struct st_open_tracks* t, struct st_open_track** at) {
  struct st_open_track* track = *at;
  *at = track->next;
  free(track);
  t->count--;
}

/* Returns the entry of the track.  Makes the entry if the track has none.
 * Returns the shared entry if there are too many tracks or memory is out. */
static struct st_open_track* find_or_make(struct st_open_tracks* t,
                                          uint64_t uuid) {
  struct st_open_track** at = find(t, uuid);
  if (*at)
    return *at;
  if (t->count < ST_MAX_OPEN_TRACKS)
    *at = calloc(1, sizeof **at);
  if (!*at)
    return &t->others;
  (*at)->uuid = uuid;
  t->count++;
  return *at;
}

void st_open_begins_push(struct st_open_tracks* t,
                         const struct st_begin_sessions* now, uint64_t uuid,
                         uint32_t mask, uint32_t written) {
  struct st_open_track* track = find_or_make(t, uuid);
  for (int i = 0; i < ST_BEGIN_SESSIONS; i++) {
    if (!(mask & (1u << i)))
      continue;
    struct st_open_begins* b = &track->sessions[i];
    if (!is_of(b, now->generations[i]))
      *b = (struct st_open_begins){now->generations[i], 0, UINT64_MAX};
    b->depth++;
    b->bits = b->bits << 1 | ((written >> i) & 1);
  }
}

static bool pop(struct st_open_begins* b) {
  bool written = b->bits & 1;
  b->bits = b->bits >> 1 | (uint64_t)1 << 63;
  b->depth--;
  return written;
}

uint32_t st_open_begins_pop(struct st_open_tracks* t,
                            const struct st_begin_sessions* now, uint64_t uuid,
                            uint32_t mask) {
  struct st_open_track** at = find(t, uuid);
  struct st_open_track* track = *at ? *at : &t->others;
  uint32_t begun = 0;
  for (int i = 0; i < ST_BEGIN_SESSIONS; i++) {
    struct st_open_begins* b = &track->sessions[i];
    if ((mask & (1u << i)) && b->depth && is_of(b, now->generations[i]))
      begun |= (uint32_t)pop(b) << i;
  }
  if (*at && !is_open(*at, now))
    drop(t, at);
  return begun;
}

void st_open_begins_forget_ended(struct st_open_tracks* t,
                                 const struct st_begin_sessions* now) {
  for (int i = 0; i < ST_BEGIN_BUCKETS; i++) {
    struct st_open_track** at = &t->buckets[i];
    while (*at) {
      if (is_open(*at, now))
        at = &(*at)->next;
      else
        drop(t, at);
    }
  }
}
