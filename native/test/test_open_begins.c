/* Tests of open begins beyond their limits: an END is written only if its BEGIN
 * was written. */
#include "core/open_begins.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"

enum { TRACKS = ST_MAX_OPEN_TRACKS + 5000, ROUNDS = 4 };

static const struct st_begin_sessions one = {{1}};
static struct st_open_tracks tracks;

static void push(uint64_t uuid, uint32_t written) {
  st_open_begins_push(&tracks, &one, uuid, 1, written);
}

static uint32_t pop(uint64_t uuid) {
  return st_open_begins_pop(&tracks, &one, uuid, 1);
}

static void clear(void) {
  static const struct st_begin_sessions none;
  st_open_begins_forget_ended(&tracks, &none);
  CHECK_EQ(tracks.count, 0);
  memset(&tracks, 0, sizeof tracks);
}

static void ends_are_written_where_their_begins_were(void) {
  struct st_begin_sessions now = {{3, 0, 5}};
  st_open_begins_push(&tracks, &now, 9, 5, 4);
  st_open_begins_push(&tracks, &now, 9, 5, 1);
  CHECK_EQ(st_open_begins_pop(&tracks, &now, 9, 5), 1);
  CHECK_EQ(st_open_begins_pop(&tracks, &now, 9, 5), 4);
  CHECK_EQ(st_open_begins_pop(&tracks, &now, 9, 5), 0);
  CHECK_EQ(tracks.count, 0);
}

static void new_session_in_a_slot_has_no_begin(void) {
  struct st_begin_sessions old = {{3}}, new = {{4}};
  st_open_begins_push(&tracks, &old, 9, 1, 1);
  CHECK_EQ(st_open_begins_pop(&tracks, &new, 9, 1), 0);
  st_open_begins_push(&tracks, &old, 9, 1, 1);
  st_open_begins_forget_ended(&tracks, &new);
  CHECK_EQ(tracks.count, 0);
}

static void outermost_begins_beyond_the_depth_count_as_written(void) {
  for (int i = 0; i < 100; i++)
    push(1, 0);
  for (int i = 0; i < 100; i++)
    CHECK_EQ(pop(1), i >= 64);
  CHECK_EQ(pop(1), 0);
  clear();
}

/* Fills `numbers` with the numbers of all tracks, in random order. */
static void order(uint64_t* seed, uint32_t* numbers) {
  for (uint32_t i = 0; i < TRACKS; i++)
    numbers[i] = i;
  for (uint32_t i = TRACKS - 1; i > 0; i--) {
    uint32_t j = (uint32_t)random_below(seed, i + 1), other = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = other;
  }
}

/* Returns the uuid of a track.  Tracks with different numbers are in different
 * hash buckets. */
static uint64_t spread_uuid(uint32_t i) {
  return (i + 1) * 0xD6E8FEB86659FD93u;
}

static uint64_t colliding_uuid(uint32_t i) {
  /* The hash multiplies a uuid by a constant.  This factor is the constant's
   * multiplicative inverse, so the products are small numbers, which share a
   * bucket. */
  return (i + 1) * 0xF1DE83E19937733Du;
}

static void no_end_is_lost_above_the_limit_of_tracks(void) {
  static uint32_t numbers[TRACKS];
  uint64_t seed = 3;
  for (int round = 0; round < ROUNDS; round++) {
    order(&seed, numbers);
    for (uint32_t i = 0; i < TRACKS; i++)
      push(spread_uuid(numbers[i]), 1);
    CHECK_EQ(tracks.count, ST_MAX_OPEN_TRACKS);
    order(&seed, numbers);
    for (uint32_t i = 0; i < TRACKS; i++)
      CHECK_EQ(pop(spread_uuid(numbers[i])), 1);
    CHECK_EQ(tracks.count, 0);
    for (uint32_t i = 0; i < TRACKS; i++)
      CHECK_EQ(pop(spread_uuid(numbers[i])), 0);
  }
  clear();
}

static void tracks_with_equal_hashes_are_distinguished(void) {
  for (uint32_t i = 0; i < 4000; i++)
    push(colliding_uuid(i), i & 1);
  for (uint32_t i = 0; i < 4000; i++)
    CHECK_EQ(pop(colliding_uuid(i)), i & 1);
  CHECK_EQ(tracks.count, 0);
}

/* Compares the table with a model without limits.  The tracks are few enough
 * for the table, and their order is random. */
static void random_begins_and_ends_match_a_model(void) {
  enum { FEW = 2000, DEEP = 64 };
  static uint64_t bits[FEW];
  static uint32_t depth[FEW];
  uint64_t seed = 9;
  for (uint32_t n = 0; n < 500000; n++) {
    uint32_t i = (uint32_t)random_below(&seed, FEW);
    uint32_t written = random_below(&seed, 4) != 0;
    if (depth[i] < DEEP && random_below(&seed, 2)) {
      push(spread_uuid(i), written);
      bits[i] = bits[i] << 1 | written;
      depth[i]++;
      continue;
    }
    CHECK_EQ(pop(spread_uuid(i)), depth[i] ? bits[i] & 1 : 0);
    bits[i] >>= depth[i] != 0;
    depth[i] -= depth[i] != 0;
  }
  clear();
}

int main(void) {
  RUN(ends_are_written_where_their_begins_were);
  RUN(new_session_in_a_slot_has_no_begin);
  RUN(outermost_begins_beyond_the_depth_count_as_written);
  RUN(no_end_is_lost_above_the_limit_of_tracks);
  RUN(tracks_with_equal_hashes_are_distinguished);
  RUN(random_begins_and_ends_match_a_model);
  return 0;
}
