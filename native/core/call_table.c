#include "call_table.h"

#include <stdlib.h>

static uint32_t capacity_of(const struct st_call_table* t) {
  return t->slots ? t->mask + 1 : 0;
}

/* Returns the first empty slot among those where the code object may be stored.
 * Returns NULL if none of them is empty. */
static struct st_call_slot* empty_place(const struct st_call_table* t,
                                        const void* code) {
  uint32_t home = st_identity_hash(code) & t->mask;
  for (uint32_t i = 0; i < ST_CALL_GROUP; i++) {
    if (!t->slots[home ^ i].code)
      return &t->slots[home ^ i];
  }
  return NULL;
}

static bool grow(struct st_call_table* t) {
  uint32_t old = capacity_of(t), capacity = old ? 2 * old : ST_MIN_CALLS;
  if (capacity > ST_MAX_CALLS)
    return false;
  struct st_call_slot* slots = calloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  struct st_call_table grown = {slots, capacity - 1, t->count};
  for (uint32_t i = 0; i < old; i++) {
    if (t->slots[i].code)
      *empty_place(&grown, t->slots[i].code) = t->slots[i];
  }
  free(t->slots);
  *t = grown;
  return true;
}

static bool is_crowded(const struct st_call_table* t, const void* code) {
  return 2 * t->count >= capacity_of(t) || !empty_place(t, code);
}

static struct st_call_slot* new_place(struct st_call_table* t,
                                      const void* code) {
  while (is_crowded(t, code) && grow(t))
    continue;
  if (!t->slots)
    return NULL;
  struct st_call_slot* empty = empty_place(t, code);
  t->count += empty != NULL;
  return empty ? empty : &t->slots[st_identity_hash(code) & t->mask];
}

struct st_call_slot* st_call_table_place(struct st_call_table* t,
                                         const void* code) {
  struct st_call_slot* known = st_call_table_find(t, code);
  return known ? known : new_place(t, code);
}

void st_call_table_destroy(struct st_call_table* t) {
  free(t->slots);
  *t = (struct st_call_table){0};
}
