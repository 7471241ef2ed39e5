/* Tests of identity caches beyond their limits: a lookup returns what was
 * stored, or 0. */
#include "core/identity_cache.h"

#include <stdbool.h>

#include "check.h"
#include "random.h"

enum { KEYS = 50000, OPERATIONS = 400000 };

/* Returns the address that stands for key number i.  The address is never
 * dereferenced. */
static void* key_at(uint64_t i) {
  return (void*)(uintptr_t)(0x7f0000000000 + 16 * (i + 1));
}

/* Stores a key in the cache.  Returns the key that was replaced. */
static void* put(struct st_identity_cache* c, uint32_t epoch, void* key,
                 uint32_t iid) {
  struct st_identity_slot* s = st_identity_place(c, epoch, key);
  CHECK(s);
  void* old = s->key;
  *s = (struct st_identity_slot){key, epoch, iid};
  return old == key ? NULL : old;
}

static void empty_cache_finds_no_key(void) {
  struct st_identity_cache c = {0};
  CHECK_EQ(st_identity_find(&c, 1, key_at(0)), 0);
  st_identity_destroy(&c);
}

static void ids_are_valid_in_their_epoch_only(void) {
  struct st_identity_cache c = {0};
  put(&c, 1, key_at(3), 7);
  CHECK_EQ(st_identity_find(&c, 1, key_at(3)), 7);
  CHECK_EQ(st_identity_find(&c, 2, key_at(3)), 0);
  put(&c, 2, key_at(3), 8);
  CHECK_EQ(st_identity_find(&c, 2, key_at(3)), 8);
  st_identity_destroy(&c);
}

/* Compares the cache with a model: a key has the id of its last put until
 * another key replaces it. */
static void random_puts_and_look_ups(uint64_t seed, uint64_t distance) {
  static uint32_t ids[KEYS];
  for (uint32_t i = 0; i < KEYS; i++)
    ids[i] = 0;
  struct st_identity_cache c = {0};
  for (uint32_t n = 1; n <= OPERATIONS; n++) {
    uint64_t i = random_below(&seed, KEYS), j = random_below(&seed, KEYS);
    CHECK_EQ(st_identity_find(&c, 1, key_at(j * distance)), ids[j]);
    void* gone = put(&c, 1, key_at(i * distance), n);
    ids[i] = n;
    if (gone)
      ids[((uintptr_t)gone - (uintptr_t)key_at(0)) / 16 / distance] = 0;
  }
  uint32_t live = 0;
  for (uint64_t i = 0; i < KEYS; i++) {
    CHECK_EQ(st_identity_find(&c, 1, key_at(i * distance)), ids[i]);
    live += ids[i] != 0;
  }
  CHECK_EQ(c.mask + 1, ST_MAX_IDENTITIES);
  CHECK(live <= ST_MAX_IDENTITIES && live > ST_MAX_IDENTITIES / 2);
  st_identity_destroy(&c);
}

static void keys_at_all_distances_keep_their_own_ids(void) {
  static const uint64_t distances[] = {1, 2, 3, 8, 12, 64, 4096, 65536};
  for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
    random_puts_and_look_ups(i + 1, distances[i]);
}

static void no_key_is_lost_while_the_cache_grows(void) {
  struct st_identity_cache c = {0};
  uint32_t held = 0;
  for (uint32_t i = 0; i < KEYS; i++) {
    uint32_t mask = c.mask;
    held += !put(&c, 1, key_at(i), i + 1);
    if (c.mask == mask)
      continue;
    uint32_t found = 0;
    for (uint32_t j = 0; j <= i; j++)
      found += st_identity_find(&c, 1, key_at(j)) == j + 1;
    CHECK_EQ(found, held);
  }
  CHECK_EQ(c.mask + 1, ST_MAX_IDENTITIES);
  st_identity_destroy(&c);
}

static void entries_of_an_old_epoch_do_not_make_the_cache_grow(void) {
  struct st_identity_cache c = {0};
  for (uint32_t epoch = 1; epoch < KEYS; epoch++)
    put(&c, epoch, key_at(epoch), 1);
  CHECK_EQ(c.mask + 1, ST_MIN_IDENTITIES);
  st_identity_destroy(&c);
}

int main(void) {
  RUN(empty_cache_finds_no_key);
  RUN(ids_are_valid_in_their_epoch_only);
  RUN(keys_at_all_distances_keep_their_own_ids);
  RUN(no_key_is_lost_while_the_cache_grows);
  RUN(entries_of_an_old_epoch_do_not_make_the_cache_grow);
  return 0;
}
