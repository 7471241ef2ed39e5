/* Identity cache: maps objects to interning ids, by the object's address.
 *
 * Each object has one possible slot, given by its hash; a new object replaces
 * the one in the slot.  So a lookup is one comparison, however full the cache
 * is.  An id is valid only in the epoch in which it was stored.
 *
 *   slots   | key, epoch, iid | ...      ST_MIN_IDENTITIES to ST_MAX_IDENTITIES
 *
 * The cache doubles when entries of the current epoch replace each other.
 *
 * The caller owns the references to the keys: it keeps an object alive while
 * the object is in a slot, and drops all references before it destroys the
 * cache.
 */
#pragma once

#include <stdint.h>

enum { ST_MIN_IDENTITIES = 64, ST_MAX_IDENTITIES = 4096 };

struct st_identity_slot {
  void* key; /* The address of the object; NULL if the slot is empty. */
  uint32_t epoch;
  uint32_t iid;
};

struct st_identity_cache {
  /* The array of slots; NULL before the first entry is added. */
  struct st_identity_slot* slots;
  uint32_t mask, conflicts;
};

/* Returns the index of a key's slot: the high bits of key times golden ratio.
 * They are evenly spread although objects are at regular distances. */
static inline uint32_t st_identity_hash(const void* key) {
  return (uint32_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 32);
}

/* Returns the interning id that was stored for the key in this epoch, or 0. */
static inline uint32_t st_identity_find(const struct st_identity_cache* c,
                                        uint32_t epoch, const void* key) {
  if (__builtin_expect(!c->slots, 0))
    return 0;
  const struct st_identity_slot* s = &c->slots[st_identity_hash(key) & c->mask];
  return s->key == key && s->epoch == epoch ? s->iid : 0;
}

/* Returns the slot for the key.  The caller fills the slot, which may hold this
 * key, another key, or no key.  Returns NULL when out of memory. */
struct st_identity_slot* st_identity_place(struct st_identity_cache* c,
                                           uint32_t epoch, const void* key);
/* Frees the memory of the cache. */
void st_identity_destroy(struct st_identity_cache* c);
