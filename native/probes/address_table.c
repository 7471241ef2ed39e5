#include "probes/address_table.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

/* Addresses differ little; the product's upper bits depend on all of theirs. */
static size_t home(const struct st_address_table* t, uint64_t address) {
  uint64_t h = (address >> 4) * 0x9E3779B97F4A7C15u;
  return (size_t)(h >> 32) & (t->capacity - 1);
}

/* Returns the slot of an address, or the free slot where it belongs. */
static struct st_address_slot* slot_of(const struct st_address_table* t,
                                       uint64_t address) {
  size_t at = home(t, address);
  while (t->slots[at].address && t->slots[at].address != address)
    at = (at + 1) & (t->capacity - 1);
  return &t->slots[at];
}

static bool grow(struct st_address_table* t) {
  struct st_address_table grown = *t;
  grown.capacity = t->capacity ? t->capacity * 2 : FIRST_CAPACITY;
  grown.slots = calloc(grown.capacity, sizeof *grown.slots);
  if (!grown.slots)
    return false;
  for (size_t i = 0; i < t->capacity; i++)
    if (t->slots[i].address)
      *slot_of(&grown, t->slots[i].address) = t->slots[i];
  free(t->slots);
  *t = grown;
  return true;
}

bool st_address_table_put(struct st_address_table* t, uint64_t address,
                          uint64_t value) {
  if (t->count * 2 >= t->capacity && !grow(t))
    return false;
  struct st_address_slot* slot = slot_of(t, address);
  if (!slot->address && t->count == t->limit)
    return false;
  t->count += !slot->address;
  *slot = (struct st_address_slot){address, value};
  return true;
}

const struct st_address_slot* st_address_table_find(
    const struct st_address_table* t, uint64_t address) {
  if (!t->count)
    return NULL;
  const struct st_address_slot* slot = slot_of(t, address);
  return slot->address ? slot : NULL;
}

/* Closes a gap: moves each following address whose home is not behind it. */
static void close_gap(struct st_address_table* t, size_t gap) {
  size_t mask = t->capacity - 1;
  for (size_t at = (gap + 1) & mask; t->slots[at].address;
       at = (at + 1) & mask) {
    size_t distance = (at - home(t, t->slots[at].address)) & mask;
    if (distance < ((at - gap) & mask))
      continue;
    t->slots[gap] = t->slots[at];
    gap = at;
  }
  t->slots[gap] = (struct st_address_slot){0};
}

bool st_address_table_take(struct st_address_table* t, uint64_t address,
                           uint64_t* value) {
  const struct st_address_slot* slot = st_address_table_find(t, address);
  if (!slot)
    return false;
  *value = slot->value;
  close_gap(t, (size_t)(slot - t->slots));
  t->count--;
  return true;
}

void st_address_table_clear(struct st_address_table* t) {
  free(t->slots);
  t->slots = NULL;
  t->capacity = t->count = 0;
}
