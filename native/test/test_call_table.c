/* Tests of call tables beyond their limits: lookups end, and return what was
 * stored. */
#include "core/call_table.h"

#include <string.h>

#include "check.h"
#include "random.h"

enum { CODES = 50000, ROUNDS = 20 };

/* Returns the address that stands for code object number i.  The address is
 * never dereferenced. */
static void* code_at(uint32_t i) {
  return (void*)(uintptr_t)(0x7f0000000000 + 16ull * (i + 1));
}

/* Finds code addresses whose hashes are equal under any mask. */
static void* colliding_code(uint64_t* seed, uint32_t hash) {
  for (;;) {
    void* code = (void*)(uintptr_t)(random_next(seed) & 0x7ffffffffff0);
    if (code && (st_identity_hash(code) & (ST_MAX_CALLS - 1)) == hash)
      return code;
  }
}

static void shuffle(uint64_t* seed, void** codes, uint32_t count) {
  for (uint32_t i = count - 1; i > 0; i--) {
    uint32_t j = (uint32_t)random_below(seed, i + 1);
    void* other = codes[i];
    codes[i] = codes[j];
    codes[j] = other;
  }
}

static uint32_t slots_in_use(const struct st_call_table* t) {
  uint32_t used = 0;
  for (uint32_t i = 0; i <= t->mask; i++)
    used += t->slots[i].code != NULL;
  return used;
}

/* Stores a code object in the table, with its own address as the content of its
 * block.  Returns the code object that was replaced. */
static void* put(struct st_call_table* t, void* code) {
  struct st_call_slot* slot = st_call_table_place(t, code);
  CHECK(slot);
  void* old = slot->code;
  slot->code = code;
  slot->epoch = st_identity_hash(code) | 1;
  memcpy(slot->block.bytes, &code, sizeof code);
  return old == code ? NULL : old;
}

static bool holds(const struct st_call_table* t, const void* code) {
  const struct st_call_slot* slot = st_call_table_find(t, code);
  if (!slot)
    return false;
  CHECK(slot->code == code);
  CHECK_EQ(slot->epoch, st_identity_hash(code) | 1);
  CHECK_EQ(memcmp(slot->block.bytes, &code, sizeof code), 0);
  return true;
}

static void all_codes_are_found_while_the_table_grows(void) {
  struct st_call_table t = {0};
  for (uint32_t i = 0; i < ST_MAX_CALLS / 2; i++) {
    CHECK(!put(&t, code_at(i)));
    CHECK(!holds(&t, code_at(i + 1)));
    CHECK_EQ(t.count, i + 1);
    for (uint32_t j = i & ~63u; j <= i; j++)
      CHECK(holds(&t, code_at(j)));
  }
  for (uint32_t i = 0; i < ST_MAX_CALLS / 2; i++)
    CHECK(holds(&t, code_at(i)));
  CHECK_EQ(t.mask + 1, ST_MAX_CALLS);
  st_call_table_destroy(&t);
}

static void code_that_is_put_twice_has_one_slot(void) {
  struct st_call_table t = {0};
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < 1000; i++)
      CHECK(!put(&t, code_at(i)));
  CHECK_EQ(t.count, 1000);
  CHECK_EQ(slots_in_use(&t), 1000);
  st_call_table_destroy(&t);
}

/* The functions below compare the table with a model: a code is in the table
 * from its put() until another put() replaces it. */
static void fill_in_order(void** codes, uint32_t count) {
  struct st_call_table t = {0};
  uint32_t held = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool known = st_call_table_find(&t, codes[i]) != NULL;
    CHECK(!known);
    void* gone = put(&t, codes[i]);
    held += !gone;
    CHECK(holds(&t, codes[i]));
    CHECK(!gone || !holds(&t, gone));
  }
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++)
    found += holds(&t, codes[i]);
  CHECK_EQ(found, held);
  CHECK_EQ(found, t.count);
  CHECK_EQ(found, slots_in_use(&t));
  CHECK_EQ(t.mask + 1, ST_MAX_CALLS);
  st_call_table_destroy(&t);
}

static void lookups_end_in_a_full_table_filled_in_any_order(void) {
  static void* codes[CODES];
  uint64_t seed = 11;
  for (uint32_t i = 0; i < CODES; i++)
    codes[i] = code_at(i);
  fill_in_order(codes, CODES);
  for (int round = 0; round < ROUNDS; round++) {
    shuffle(&seed, codes, CODES);
    fill_in_order(codes, CODES);
  }
}

static void every_slot_is_used_eventually(void) {
  struct st_call_table t = {0};
  for (uint32_t i = 0; t.count < ST_MAX_CALLS; i++) {
    CHECK(i < 1000 * CODES);
    put(&t, code_at(i));
  }
  for (uint32_t i = 0; i < CODES; i++)
    CHECK(!holds(&t, (void*)((uintptr_t)code_at(i) + 8)));
  st_call_table_destroy(&t);
}

static void codes_with_equal_hashes_use_one_group(void) {
  uint64_t seed = 5;
  struct st_call_table t = {0};
  void* codes[3 * ST_CALL_GROUP];
  for (uint32_t i = 0; i < 3 * ST_CALL_GROUP; i++) {
    codes[i] = colliding_code(&seed, 77);
    void* gone = put(&t, codes[i]);
    CHECK(!gone == (i < ST_CALL_GROUP));
    CHECK(holds(&t, codes[i]));
  }
  uint32_t found = 0;
  for (uint32_t i = 0; i < 3 * ST_CALL_GROUP; i++)
    found += holds(&t, codes[i]);
  CHECK_EQ(found, ST_CALL_GROUP);
  CHECK_EQ(t.count, ST_CALL_GROUP);
  st_call_table_destroy(&t);
}

int main(void) {
  RUN(all_codes_are_found_while_the_table_grows);
  RUN(code_that_is_put_twice_has_one_slot);
  RUN(lookups_end_in_a_full_table_filled_in_any_order);
  RUN(every_slot_is_used_eventually);
  RUN(codes_with_equal_hashes_use_one_group);
  return 0;
}
