/* Tests of intern tables: ids of strings, and the bounds of the table. */
#include "core/intern_table.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "random.h"

static uint32_t intern(struct st_intern_table* t, enum st_intern_kind kind,
                       const char* text, bool expect_new) {
  bool is_new = !expect_new;
  uint32_t iid = st_intern(t, kind, text, strlen(text), &is_new);
  CHECK_EQ(is_new, expect_new);
  return iid;
}

static void test_equal_strings_have_the_same_id(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "paint", true), 1);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "layout", true), 2);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "paint", false), 1);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "", true), 3);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "", false), 3);
  bool is_new;
  CHECK_EQ(st_intern(&t, ST_INTERN_EVENT_NAME, "a\0b", 3, &is_new), 4);
  CHECK_EQ(st_intern(&t, ST_INTERN_EVENT_NAME, "a\0c", 3, &is_new), 5);
  st_intern_destroy(&t);
}

static void test_each_kind_of_string_has_its_own_ids(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  for (unsigned kind = 0; kind < ST_INTERN_KINDS; kind++) {
    CHECK_EQ(intern(&t, kind, "same", true), 1);
    CHECK_EQ(intern(&t, kind, "other", true), 2);
  }
  for (unsigned kind = 0; kind < ST_INTERN_KINDS; kind++)
    CHECK_EQ(intern(&t, kind, "same", false), 1);
  st_intern_destroy(&t);
}

static void test_ids_restart_at_1_after_clear(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  st_intern_clear(&t); /* The table is empty, so clearing it has no effect. */
  CHECK_EQ(intern(&t, ST_INTERN_CATEGORY, "one", true), 1);
  CHECK_EQ(intern(&t, ST_INTERN_CATEGORY, "two", true), 2);
  st_intern_clear(&t);
  CHECK_EQ(intern(&t, ST_INTERN_CATEGORY, "two", true), 1);
  CHECK_EQ(intern(&t, ST_INTERN_CATEGORY, "one", true), 2);
  st_intern_destroy(&t);
}

static void test_ids_without_a_string_are_unique(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  CHECK_EQ(st_intern_take_id(&t, ST_INTERN_EVENT_NAME), 1);
  /* The table has no strings, so clearing it only restarts the ids. */
  st_intern_clear(&t);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "paint", true), 1);
  CHECK_EQ(st_intern_take_id(&t, ST_INTERN_EVENT_NAME), 2);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "layout", true), 3);
  CHECK_EQ(intern(&t, ST_INTERN_CATEGORY, "layout", true), 1);
  for (unsigned i = 3; i < ST_INTERN_MAX_STRINGS; i++)
    CHECK(st_intern_take_id(&t, ST_INTERN_EVENT_NAME));
  CHECK_EQ(st_intern_take_id(&t, ST_INTERN_EVENT_NAME), 0);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "more", true),
           ST_INTERN_MAX_STRINGS + 1);
  st_intern_destroy(&t);
}

static void test_long_strings_get_no_id(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  char text[ST_INTERN_MAX_LENGTH + 2];
  memset(text, 'x', sizeof text);
  bool is_new = true;
  CHECK_EQ(st_intern(&t, ST_INTERN_LOG_BODY, text, ST_INTERN_MAX_LENGTH + 1,
                     &is_new),
           0);
  CHECK(!is_new);
  CHECK_EQ(
      st_intern(&t, ST_INTERN_LOG_BODY, text, ST_INTERN_MAX_LENGTH, &is_new),
      1);
  CHECK(is_new);
  st_intern_destroy(&t);
}

static void test_number_of_strings_is_bounded(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  char text[32];
  for (unsigned i = 0; i < ST_INTERN_MAX_STRINGS; i++) {
    snprintf(text, sizeof text, "name %u", i);
    CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, text, true), i + 1);
  }
  uint32_t capacity = t.capacity, arena = t.arena_capacity;
  for (unsigned i = 0; i < 3 * ST_INTERN_MAX_STRINGS; i++) {
    snprintf(text, sizeof text, "name %u", i);
    bool known = i < ST_INTERN_MAX_STRINGS;
    CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, text, false), known ? i + 1 : 0);
  }
  CHECK_EQ(t.capacity, capacity);
  CHECK_EQ(t.arena_capacity, arena);
  st_intern_destroy(&t);
}

static void test_number_of_bytes_is_bounded(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  char text[ST_INTERN_MAX_LENGTH + 1];
  unsigned taken = 0;
  for (unsigned i = 0; i < 2000; i++) {
    snprintf(text, sizeof text, "%0*u", ST_INTERN_MAX_LENGTH, i);
    bool is_new;
    if (st_intern(&t, ST_INTERN_EVENT_NAME, text, ST_INTERN_MAX_LENGTH,
                  &is_new))
      taken++;
  }
  CHECK_EQ(taken, ST_INTERN_MAX_BYTES / ST_INTERN_MAX_LENGTH);
  CHECK(t.arena_capacity <= ST_INTERN_MAX_BYTES);
  st_intern_destroy(&t);
}

/* Compares the table with a model, also beyond both limits: stored strings keep
 * their ids, and new ones get the next id of their kind while there is room. */
static void test_random_strings_beyond_the_limits_match_a_model(void) {
  enum { STRINGS = 3 * ST_INTERN_MAX_STRINGS, OPERATIONS = 300000 };
  static uint16_t ids[ST_INTERN_KINDS][STRINGS];
  struct st_intern_table t;
  st_intern_init(&t);
  for (uint64_t round = 1; round <= 3; round++) {
    uint64_t seed = round;
    uint16_t last[ST_INTERN_KINDS] = {0};
    uint32_t count = 0;
    memset(ids, 0, sizeof ids);
    for (int n = 0; n < OPERATIONS; n++) {
      char text[32];
      uint32_t i = (uint32_t)random_below(&seed, STRINGS);
      uint32_t kind = (uint32_t)random_below(&seed, ST_INTERN_KINDS);
      snprintf(text, sizeof text, "%u", i);
      bool takes = !ids[kind][i] && count < ST_INTERN_MAX_STRINGS;
      if (takes)
        ids[kind][i] = ++last[kind];
      count += takes;
      CHECK_EQ(intern(&t, kind, text, takes), ids[kind][i]);
    }
    CHECK_EQ(count, ST_INTERN_MAX_STRINGS);
    CHECK_EQ(t.count, ST_INTERN_MAX_STRINGS);
    st_intern_clear(&t);
  }
  st_intern_destroy(&t);
}

/* Returns the hash of the only string in the table. */
static uint32_t only_hash(const struct st_intern_table* t) {
  uint32_t i = 0;
  while (!t->slots[i].iid)
    i++;
  return t->slots[i].hash;
}

/* Makes a string whose hash has a given value in the bits that the largest
 * table uses. */
static void find_colliding(char* text, size_t size, uint32_t* number) {
  struct st_intern_table t;
  st_intern_init(&t);
  do {
    st_intern_clear(&t);
    snprintf(text, size, "%u", ++*number);
    intern(&t, ST_INTERN_EVENT_NAME, text, true);
  } while (only_hash(&t) % (2 * ST_INTERN_MAX_STRINGS) != 17);
  st_intern_destroy(&t);
}

static void test_strings_with_equal_hashes_have_different_ids(void) {
  enum { COLLIDING = 100 };
  static char texts[COLLIDING][16];
  uint32_t number = 0;
  struct st_intern_table t;
  st_intern_init(&t);
  for (int i = 0; i < COLLIDING; i++) {
    find_colliding(texts[i], sizeof texts[i], &number);
    CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, texts[i], true), i + 1);
  }
  for (int i = COLLIDING - 1; i >= 0; i--)
    CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, texts[i], false), i + 1);
  st_intern_destroy(&t);
}

static void stored_strings_are_found_by_value_and_kind(void) {
  struct st_intern_table t;
  uint32_t hash, other;
  st_intern_init(&t);
  CHECK_EQ(st_intern_find(&t, ST_INTERN_EVENT_NAME, "paint", 5, &hash), 0);
  CHECK_EQ(intern(&t, ST_INTERN_CATEGORY, "paint", true), 1);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "layout", true), 1);
  CHECK_EQ(st_intern_find(&t, ST_INTERN_EVENT_NAME, "paint", 5, &other), 0);
  CHECK_EQ(hash, other);
  CHECK_EQ(intern(&t, ST_INTERN_EVENT_NAME, "paint", true), 2);
  CHECK_EQ(st_intern_find(&t, ST_INTERN_EVENT_NAME, "paint", 5, &other), 2);
  st_intern_destroy(&t);
}

static void hash_depends_on_each_byte_and_on_the_length(void) {
  struct st_intern_table t;
  st_intern_init(&t);
  char text[40];
  memset(text, 'x', sizeof text);
  for (size_t size = 1; size <= sizeof text; size++) {
    uint32_t hash, other;
    st_intern_find(&t, ST_INTERN_EVENT_NAME, text, size - 1, &other);
    st_intern_find(&t, ST_INTERN_EVENT_NAME, text, size, &hash);
    CHECK(hash != other);
    for (size_t i = 0; i < size; i++) {
      text[i] = 'y';
      st_intern_find(&t, ST_INTERN_EVENT_NAME, text, size, &other);
      CHECK(hash != other);
      text[i] = 'x';
    }
  }
  st_intern_destroy(&t);
}

int main(void) {
  RUN(test_equal_strings_have_the_same_id);
  RUN(test_each_kind_of_string_has_its_own_ids);
  RUN(test_ids_restart_at_1_after_clear);
  RUN(test_ids_without_a_string_are_unique);
  RUN(test_long_strings_get_no_id);
  RUN(test_number_of_strings_is_bounded);
  RUN(test_number_of_bytes_is_bounded);
  RUN(test_random_strings_beyond_the_limits_match_a_model);
  RUN(test_strings_with_equal_hashes_have_different_ids);
  RUN(stored_strings_are_found_by_value_and_kind);
  RUN(hash_depends_on_each_byte_and_on_the_length);
  return 0;
}
