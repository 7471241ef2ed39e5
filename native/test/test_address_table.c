/* Tests of the address table and of the address filter, against simple
 * models. */
#include "probes/address_table.h"

#include <string.h>

#include "check.h"
#include "probes/address_filter.h"
#include "random.h"

enum { ADDRESSES = 4000, STEPS = 400000 };

/* Every address is a multiple of 16, from a small window: many collide. */
static uint64_t address_of(uint64_t number) {
  return 0x7f0000000000u + number * 16;
}

static void agrees_with_an_array(void) {
  static uint64_t model[ADDRESSES];
  struct st_address_table t = {.limit = ADDRESSES};
  uint64_t random = 1, count = 0, value;
  for (uint64_t step = 1; step <= STEPS; step++) {
    uint64_t i = random_below(&random, ADDRESSES);
    uint64_t* known = &model[i];
    if (random_below(&random, 2)) {
      CHECK(st_address_table_put(&t, address_of(i), step));
      count += !*known;
      *known = step;
    } else {
      CHECK_EQ(st_address_table_take(&t, address_of(i), &value), *known != 0);
      CHECK(!*known || value == *known);
      count -= *known != 0;
      *known = 0;
    }
    CHECK_EQ(t.count, count);
  }
  for (uint64_t i = 0; i < ADDRESSES; i++) {
    const struct st_address_slot* s = st_address_table_find(&t, address_of(i));
    CHECK_EQ(s ? s->value : 0, model[i]);
  }
  st_address_table_clear(&t);
}

static void full_table_refuses_new_addresses(void) {
  struct st_address_table t = {.limit = 3000};
  uint64_t value;
  for (uint64_t i = 1; i <= 3000; i++)
    CHECK(st_address_table_put(&t, address_of(i), i));
  CHECK(!st_address_table_put(&t, address_of(5000), 1));
  CHECK(st_address_table_put(&t, address_of(7), 70));
  CHECK(st_address_table_take(&t, address_of(7), &value));
  CHECK_EQ(value, 70);
  CHECK(st_address_table_put(&t, address_of(5000), 1));
  st_address_table_clear(&t);
  CHECK(!st_address_table_find(&t, address_of(1)));
  CHECK(st_address_table_put(&t, address_of(1), 1));
  st_address_table_clear(&t);
}

static void filter_misses_no_address_of_the_set(void) {
  static struct st_address_filter f;
  static uint8_t model[ADDRESSES];
  uint64_t random = 1;
  for (int step = 0; step < STEPS; step++) {
    uint64_t i = random_below(&random, ADDRESSES);
    uint64_t address = address_of(i << 14); /* Many share a counter. */
    if (model[i] && random_below(&random, 3)) {
      st_filter_remove(&f, address);
      model[i]--;
    } else if (model[i] < 200) {
      st_filter_add(&f, address);
      model[i]++;
    }
    CHECK(!model[i] || st_filter_may_have(&f, address));
  }
}

static void emptied_filter_has_no_address(void) {
  static struct st_address_filter f;
  for (uint64_t i = 0; i < ADDRESSES; i++)
    st_filter_add(&f, address_of(i));
  for (uint64_t i = 0; i < ADDRESSES; i++)
    st_filter_remove(&f, address_of(i));
  for (uint64_t i = 0; i < ADDRESSES; i++)
    CHECK(!st_filter_may_have(&f, address_of(i)));
}

static void full_counter_stays(void) {
  static struct st_address_filter f;
  for (int i = 0; i < 1000; i++)
    st_filter_add(&f, address_of(1));
  for (int i = 0; i < 999; i++)
    st_filter_remove(&f, address_of(1));
  CHECK(st_filter_may_have(&f, address_of(1)));
}

int main(void) {
  RUN(agrees_with_an_array);
  RUN(full_table_refuses_new_addresses);
  RUN(filter_misses_no_address_of_the_set);
  RUN(emptied_filter_has_no_address);
  RUN(full_counter_stays);
  return 0;
}
