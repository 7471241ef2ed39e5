/* Tests of suspended calls: lookups, removals, and the limit. */
#include "core/suspended_calls.h"

#include "check.h"

enum { MANY = 5000 };

static struct st_suspended_calls calls;

static bool add(uint64_t address, uint32_t except) {
  const struct st_suspended_call call = {.address = address, .except = except};
  return st_suspended_add(&calls, &call);
}

static void no_call_is_found_in_an_empty_table(void) {
  CHECK(!st_suspended_find(&calls, 1));
  st_suspended_remove(&calls, 1);
  CHECK_EQ(calls.count, 0);
}

static void calls_are_found_until_they_are_removed(void) {
  for (uint32_t i = 1; i <= MANY; i++)
    CHECK(add(i * 16, i));
  CHECK_EQ(calls.count, MANY);
  for (uint32_t i = 1; i <= MANY; i += 2)
    st_suspended_remove(&calls, i * 16);
  CHECK_EQ(calls.count, MANY / 2);
  for (uint32_t i = 1; i <= MANY; i++) {
    const struct st_suspended_call* found = st_suspended_find(&calls, i * 16);
    CHECK_EQ(found != NULL, i % 2 == 0);
    CHECK(!found || found->except == i);
  }
  st_suspended_clear(&calls);
  CHECK(!calls.slots);
}

static void new_call_replaces_one_at_the_same_address(void) {
  CHECK(add(64, 1));
  CHECK(add(64, 2));
  CHECK_EQ(calls.count, 1);
  CHECK_EQ(st_suspended_find(&calls, 64)->except, 2);
  st_suspended_clear(&calls);
}

static void number_of_calls_is_limited(void) {
  for (uint64_t i = 1; i <= ST_SUSPENDED_CALLS; i++)
    CHECK(add(i, 0));
  CHECK(!add(ST_SUSPENDED_CALLS + 1, 0));
  CHECK_EQ(calls.count, ST_SUSPENDED_CALLS);
  st_suspended_clear(&calls);
}

int main(void) {
  RUN(no_call_is_found_in_an_empty_table);
  RUN(calls_are_found_until_they_are_removed);
  RUN(new_call_replaces_one_at_the_same_address);
  RUN(number_of_calls_is_limited);
  return 0;
}
