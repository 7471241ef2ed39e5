/* Tests of life tables: lookups, limits of rates, and the times of looks. */
#include "core/life_table.h"

#include <stdlib.h>

#include "check.h"

enum { LIVES_PER_SECOND = 1000, MANY = 5000, LEAST_NS = 50000 };
#define START_NS UINT64_C(60000000000)
#define SECOND_NS UINT64_C(1000000000)

static struct st_life_table table;

static const void* object_at(uint64_t i) {
  return (const void*)(uintptr_t)(0x7f0000000000 + 16 * i);
}

static void make(bool every) {
  CHECK(st_life_table_init(&table, LIVES_PER_SECOND, every));
}

static uint64_t destroy(void) {
  uint64_t count = 0;
  for (struct st_life *l = st_life_take_all(&table), *next; l; l = next) {
    next = l->next;
    free(l);
    count++;
  }
  return count;
}

static uint64_t allowed(bool (*may)(struct st_life_table*, uint64_t),
                        uint64_t asked, uint64_t now) {
  uint64_t count = 0;
  while (asked-- > 0)
    count += may(&table, now);
  return count;
}

static void empty_table_has_no_lives(void) {
  CHECK(!st_life_find(&table, object_at(1)));
  CHECK(!st_life_add(&table, object_at(1), START_NS));
  CHECK(!st_life_may_add(&table, START_NS));
  CHECK_EQ(destroy(), 0);
}

static void lives_are_found_until_they_are_taken(void) {
  make(false);
  for (uint64_t i = 0; i < MANY; i++)
    CHECK_EQ(st_life_add(&table, object_at(i), i)->created, i);
  CHECK_EQ(table.count, MANY);
  for (uint64_t i = 0; i < MANY; i += 2) {
    struct st_life* life = st_life_find(&table, object_at(i));
    CHECK_EQ(life->created, i);
    st_life_take(&table, life);
    free(life);
  }
  for (uint64_t i = 0; i < MANY; i++)
    CHECK_EQ(st_life_find(&table, object_at(i)) != NULL, i % 2);
  CHECK_EQ(destroy(), MANY / 2);
  CHECK(!table.buckets);
}

static void rate_of_new_lives_is_limited(void) {
  make(false);
  CHECK_EQ(allowed(st_life_may_add, MANY, START_NS), LIVES_PER_SECOND + 1);
  CHECK_EQ(allowed(st_life_may_add, MANY, START_NS + SECOND_NS / 10),
           LIVES_PER_SECOND / 10);
  CHECK_EQ(allowed(st_life_may_add, MANY, START_NS + 10 * SECOND_NS),
           LIVES_PER_SECOND + 1);
  destroy();
}

static void rate_of_new_lanes_is_limited(void) {
  make(false);
  CHECK_EQ(allowed(st_life_may_add_lane, MANY, START_NS),
           ST_LANES_PER_SECOND + 1);
  destroy();
}

static void table_with_every_set_has_no_limits(void) {
  make(true);
  CHECK_EQ(allowed(st_life_may_add, MANY, START_NS), MANY);
  CHECK_EQ(allowed(st_life_may_add_lane, MANY, START_NS), MANY);
  destroy();
}

static void short_life_needs_no_look(void) {
  make(false);
  struct st_life* life = st_life_add(&table, object_at(1), START_NS);
  CHECK(!st_life_needs_look(&table, life, LEAST_NS, START_NS + LEAST_NS - 1));
  CHECK(st_life_needs_look(&table, life, LEAST_NS, START_NS + LEAST_NS));
  destroy();
}

static void lane_needs_look_after_long_wait_or_each_period(void) {
  make(false);
  struct st_life* life = st_life_add(&table, object_at(1), START_NS);
  char lane;
  life->lane = &lane;
  life->looked = life->suspended = START_NS + SECOND_NS;
  uint64_t now = life->suspended;
  CHECK(!st_life_needs_look(&table, life, LEAST_NS, now + LEAST_NS - 1));
  CHECK(st_life_needs_look(&table, life, LEAST_NS, now + LEAST_NS));
  life->suspended = now + ST_LOOK_PERIOD_NS - 1;
  CHECK(
      !st_life_needs_look(&table, life, LEAST_NS, now + ST_LOOK_PERIOD_NS - 1));
  CHECK(st_life_needs_look(&table, life, LEAST_NS, now + ST_LOOK_PERIOD_NS));
  destroy();
}

static void looks_after_short_waits_take_a_limited_share_of_the_time(void) {
  make(false);
  struct st_life* life = st_life_add(&table, object_at(1), START_NS);
  char lane;
  life->lane = &lane;
  uint64_t now = START_NS + SECOND_NS;
  life->looked = life->suspended = now - LEAST_NS;
  st_life_looked(&table, now - SECOND_NS / (ST_LOOK_SHARE - 1), now);
  CHECK(st_life_needs_look(&table, life, LEAST_NS, now));
  st_life_looked(&table, now, now + LEAST_NS);
  CHECK_EQ(table.waits_left_out, 0);
  CHECK(!st_life_needs_look(&table, life, LEAST_NS, now));
  CHECK_EQ(table.waits_left_out, 1);
  life->suspended = now;
  life->looked = now - ST_LOOK_PERIOD_NS;
  CHECK(!st_life_needs_look(&table, life, LEAST_NS, now));
  CHECK_EQ(table.waits_left_out, 1);
  life->suspended = now - ST_LOOK_PERIOD_NS;
  CHECK(st_life_needs_look(&table, life, LEAST_NS, now));
  life->suspended = now - LEAST_NS;
  now += ST_LOOK_SHARE * LEAST_NS;
  CHECK(st_life_needs_look(&table, life, LEAST_NS, now));
  destroy();
}

static void table_with_every_set_does_not_limit_looks(void) {
  make(true);
  struct st_life* life = st_life_add(&table, object_at(1), START_NS);
  char lane;
  life->lane = &lane;
  life->looked = life->suspended = START_NS;
  st_life_looked(&table, START_NS, START_NS + SECOND_NS);
  CHECK(st_life_needs_look(&table, life, 0, START_NS));
  CHECK_EQ(table.waits_left_out, 0);
  destroy();
}

static void first_look_is_delayed_by_the_limit_of_new_lanes(void) {
  make(false);
  struct st_life* life = st_life_add(&table, object_at(1), START_NS);
  uint64_t now = START_NS + SECOND_NS;
  allowed(st_life_may_add_lane, MANY, now);
  CHECK(!st_life_needs_look(&table, life, LEAST_NS, now));
  CHECK(st_life_needs_look(&table, life, LEAST_NS, now + SECOND_NS));
  destroy();
}

int main(void) {
  RUN(empty_table_has_no_lives);
  RUN(lives_are_found_until_they_are_taken);
  RUN(rate_of_new_lives_is_limited);
  RUN(rate_of_new_lanes_is_limited);
  RUN(table_with_every_set_has_no_limits);
  RUN(short_life_needs_no_look);
  RUN(lane_needs_look_after_long_wait_or_each_period);
  RUN(looks_after_short_waits_take_a_limited_share_of_the_time);
  RUN(table_with_every_set_does_not_limit_looks);
  RUN(first_look_is_delayed_by_the_limit_of_new_lanes);
  return 0;
}
