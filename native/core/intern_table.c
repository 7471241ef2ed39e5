#include "intern_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64, FIRST_ARENA = 1024 };

void st_intern_init(struct st_intern_table* t) {
  memset(t, 0, sizeof *t);
}

void st_intern_destroy(struct st_intern_table* t) {
  free(t->slots);
  free(t->arena);
  memset(t, 0, sizeof *t);
}

void st_intern_clear(struct st_intern_table* t) {
  memset(t->last_iid, 0, sizeof t->last_iid);
  if (t->count == 0)
    return;
  memset(t->slots, 0, t->capacity * sizeof *t->slots);
  t->count = 0;
  t->arena_size = 0;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

static uint64_t load_8(const uint8_t* data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
  return word;
}

/* Returns a word that contains the last bytes of a string, up to eight.  The
 * loads have constant sizes and may overlap: a copy of variable size would need
 * a function call. */
static uint64_t last_word(const uint8_t* data, size_t size) {
  if (size >= 8)
    return load_8(data + size - 8);
  if (size >= 4) {
    uint32_t first, last;
    memcpy(&first, data, sizeof first);
    memcpy(&last, data + size - sizeof last, sizeof last);
    return first | (uint64_t)last << 32;
  }
  if (size == 0)
    return 0;
  return data[0] | (uint64_t)data[size / 2] << 8 |
         (uint64_t)data[size - 1] << 16;
}

static inline uint32_t hash_of(enum st_intern_kind kind, const uint8_t* data,
                               size_t size) {
  uint64_t hash = mix((uint64_t)kind, size);
  uint64_t last = last_word(data, size);
  for (; size > 8; data += 8, size -= 8)
    hash = mix(hash, load_8(data));
  /* The last multiplication makes all bits of the hash depend on the last bytes
   * of the word. */
  return (uint32_t)(mix(hash, last) * 0x9E3779B97F4A7C15u >> 32);
}

static bool matches(const struct st_intern_table* t,
                    const struct st_intern_slot* slot, uint32_t hash,
                    enum st_intern_kind kind, const void* data, size_t size) {
  return slot->hash == hash && slot->kind == kind && slot->length == size &&
         (size == 0 || memcmp(t->arena + slot->offset, data, size) == 0);
}

/* Returns the slot of the string.  If the string is not stored, returns the
 * empty slot in which it can be stored. */
static inline struct st_intern_slot* find(const struct st_intern_table* t,
                                          uint32_t hash,
                                          enum st_intern_kind kind,
                                          const void* data, size_t size) {
  uint32_t mask = t->capacity - 1;
  uint32_t i = hash & mask;
  while (t->slots[i].iid && !matches(t, &t->slots[i], hash, kind, data, size))
    i = (i + 1) & mask;
  return &t->slots[i];
}

/* Doubles the slots when more than half of them are used, so that find() needs
 * few steps. */
static bool grow_slots(struct st_intern_table* t) {
  if (t->capacity > 0 && t->count * 2 <= t->capacity)
    return true;
  uint32_t capacity = t->capacity ? t->capacity * 2 : FIRST_SLOTS;
  struct st_intern_slot* slots = calloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  for (uint32_t i = 0; i < t->capacity; i++) {
    if (!t->slots[i].iid)
      continue;
    uint32_t to = t->slots[i].hash & (capacity - 1);
    while (slots[to].iid)
      to = (to + 1) & (capacity - 1);
    slots[to] = t->slots[i];
  }
  free(t->slots);
  t->slots = slots;
  t->capacity = capacity;
  return true;
}

static bool grow_arena(struct st_intern_table* t, size_t size) {
  if (t->arena_size + size <= t->arena_capacity)
    return true;
  uint32_t capacity = t->arena_capacity ? t->arena_capacity * 2 : FIRST_ARENA;
  uint8_t* arena = realloc(t->arena, capacity);
  if (!arena)
    return false;
  t->arena = arena;
  t->arena_capacity = capacity;
  return true;
}

static bool may_add(const struct st_intern_table* t, size_t size) {
  return t->count < ST_INTERN_MAX_STRINGS &&
         t->arena_size + size <= ST_INTERN_MAX_BYTES;
}

static uint32_t add(struct st_intern_table* t, struct st_intern_slot* slot,
                    uint32_t hash, enum st_intern_kind kind, const void* data,
                    size_t size) {
  *slot = (struct st_intern_slot){.hash = hash,
                                  .offset = t->arena_size,
                                  .length = (uint16_t)size,
                                  .iid = ++t->last_iid[kind],
                                  .kind = (uint8_t)kind};
  if (size > 0)
    memcpy(t->arena + t->arena_size, data, size);
  t->arena_size += (uint32_t)size;
  t->count++;
  return slot->iid;
}

uint32_t st_intern(struct st_intern_table* t, enum st_intern_kind kind,
                   const void* data, size_t size, bool* is_new) {
  *is_new = false;
  if (size > ST_INTERN_MAX_LENGTH || !grow_slots(t))
    return 0;
  uint32_t hash = hash_of(kind, data, size);
  struct st_intern_slot* slot = find(t, hash, kind, data, size);
  if (slot->iid)
    return slot->iid;
  if (!may_add(t, size) || !grow_arena(t, size))
    return 0;
  *is_new = true;
  return add(t, slot, hash, kind, data, size);
}

uint32_t st_intern_find(const struct st_intern_table* t,
                        enum st_intern_kind kind, const void* data, size_t size,
                        uint32_t* hash) {
  *hash = hash_of(kind, data, size);
  return t->capacity ? find(t, *hash, kind, data, size)->iid : 0;
}

uint32_t st_intern_take_id(struct st_intern_table* t,
                           enum st_intern_kind kind) {
  bool left = t->last_iid[kind] < ST_INTERN_MAX_STRINGS;
  return left ? ++t->last_iid[kind] : 0;
}
