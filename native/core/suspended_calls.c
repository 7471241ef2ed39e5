#include "suspended_calls.h"

#include <stddef.h>
#include <stdlib.h>

enum { FIRST_SIZE = 64 };

static uint32_t home(const struct st_suspended_calls* s, uint64_t address) {
  return (uint32_t)(address * 0x9E3779B97F4A7C15 >> 32) & (s->size - 1);
}

static uint32_t next(const struct st_suspended_calls* s, uint32_t slot) {
  return (slot + 1) & (s->size - 1);
}

/* Returns the slot of the address, or the free one in which it belongs. */
static uint32_t slot_of(const struct st_suspended_calls* s, uint64_t address) {
  uint32_t slot = home(s, address);
  while (s->slots[slot].address && s->slots[slot].address != address)
    slot = next(s, slot);
  return slot;
}

/* At most half of the slots are used. */
static bool make_room(struct st_suspended_calls* s) {
  if (s->count < s->size / 2)
    return true;
  if (s->count >= ST_SUSPENDED_CALLS)
    return false;
  struct st_suspended_calls grown = *s;
  grown.size = s->size ? s->size * 2 : FIRST_SIZE;
  grown.slots = calloc(grown.size, sizeof *grown.slots);
  if (!grown.slots)
    return false;
  for (uint32_t i = 0; i < s->size; i++) {
    if (s->slots[i].address)
      grown.slots[slot_of(&grown, s->slots[i].address)] = s->slots[i];
  }
  free(s->slots);
  *s = grown;
  return true;
}

bool st_suspended_add(struct st_suspended_calls* s,
                      const struct st_suspended_call* call) {
  if (!make_room(s))
    return false;
  struct st_suspended_call* slot = &s->slots[slot_of(s, call->address)];
  s->count += !slot->address;
  *slot = *call;
  return true;
}

const struct st_suspended_call* st_suspended_find(
    const struct st_suspended_calls* s, uint64_t address) {
  if (!s->count)
    return NULL;
  const struct st_suspended_call* slot = &s->slots[slot_of(s, address)];
  return slot->address ? slot : NULL;
}

/* Moves the calls after the free slot back, where they would not be found. */
static void close_gap(struct st_suspended_calls* s, uint32_t gap) {
  for (uint32_t i = next(s, gap); s->slots[i].address; i = next(s, i)) {
    uint32_t from_home = (i - home(s, s->slots[i].address)) & (s->size - 1);
    uint32_t from_gap = (i - gap) & (s->size - 1);
    if (from_home < from_gap)
      continue;
    s->slots[gap] = s->slots[i];
    s->slots[i].address = 0;
    gap = i;
  }
}

void st_suspended_remove(struct st_suspended_calls* s, uint64_t address) {
  if (!st_suspended_find(s, address))
    return;
  uint32_t slot = slot_of(s, address);
  s->slots[slot].address = 0;
  s->count--;
  close_gap(s, slot);
}

void st_suspended_clear(struct st_suspended_calls* s) {
  free(s->slots);
  *s = (struct st_suspended_calls){0};
}
