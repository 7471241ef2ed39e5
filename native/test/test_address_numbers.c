/* Tests of the numbers of addresses, against a simple model. */
#include "probes/address_numbers.h"

#include "check.h"
#include "random.h"

enum { ADDRESSES = 20000, STEPS = 200000 };

static uint64_t address_of(uint64_t i) {
  return 0x7f0000000000u + i * 16;
}

static void numbers_follow_the_first_sight(void) {
  static uint32_t numbers[ADDRESSES], seen[ADDRESSES];
  struct st_address_numbers n = {.max = ADDRESSES};
  uint64_t random = 1;
  uint32_t count = 0;
  CHECK_EQ(st_number_known(&n, address_of(0)), 0);
  for (uint64_t step = 0; step < STEPS; step++) {
    uint64_t i = random_below(&random, ADDRESSES);
    CHECK_EQ(st_number_known(&n, address_of(i)), numbers[i]);
    if (!numbers[i])
      numbers[i] = ++count;
    seen[i]++;
    CHECK_EQ(st_number_of(&n, address_of(i)), numbers[i]);
  }
  CHECK_EQ(n.entries.size, count);
  for (uint64_t i = 0; i < ADDRESSES; i++)
    CHECK(!numbers[i] ||
          (n.entries.data[numbers[i] - 1].seen == seen[i] &&
           n.entries.data[numbers[i] - 1].address == address_of(i)));
  st_address_numbers_clear(&n);
  CHECK_EQ(n.entries.size, 0);
  CHECK_EQ(st_number_of(&n, address_of(5)), 1);
  st_address_numbers_clear(&n);
}

static void full_numbers_know_the_old_addresses(void) {
  struct st_address_numbers n = {.max = 3};
  for (uint64_t i = 1; i <= 3; i++)
    CHECK_EQ(st_number_of(&n, address_of(i)), i);
  CHECK_EQ(st_number_of(&n, address_of(4)), 0);
  CHECK_EQ(st_number_of(&n, address_of(2)), 2);
  st_address_numbers_clear(&n);
}

int main(void) {
  RUN(numbers_follow_the_first_sight);
  RUN(full_numbers_know_the_old_addresses);
  return 0;
}
