/* Identity cache: objects to interning ids, by the object's address.
 *
 * Each object has one place, given by its hash; the one put last keeps it.  So
 * a look-up is one comparison, however full the cache is.  An id counts only
 * in the epoch it was put in.
 *
 *   slots   | key, epoch, iid | ...      ST_MIN_IDENTITIES to ST_MAX_IDENTITIES
 *
 * The cache doubles while entries of the current epoch push each other out.
 *
 * The caller owns the keys: he keeps an object alive while it is in a slot,
 * and frees what the slots hold before he destroys the cache.
 */
#pragma once

#include <stdint.h>

enum { ST_MIN_IDENTITIES = 64, ST_MAX_IDENTITIES = 4096 };

struct st_identity_slot {
  void* key; /* NULL: empty */
  uint32_t epoch;
  uint32_t iid;
};

struct st_identity_cache {
  struct st_identity_slot* slots; /* NULL: none yet */
  uint32_t mask, conflicts;
};

/* High bits of a multiple of the golden ratio: objects lie at regular
 * distances, and these spread them evenly. */
static inline uint32_t st_identity_hash(const void* key) {
  return (uint32_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 32);
}

/* The id that was put in this epoch, or 0. */
static inline uint32_t st_identity_find(const struct st_identity_cache* c,
                                        uint32_t epoch, const void* key) {
  if (__builtin_expect(!c->slots, 0))
    return 0;
  const struct st_identity_slot* s = &c->slots[st_identity_hash(key) & c->mask];
  return s->key == key && s->epoch == epoch ? s->iid : 0;
}

/* The slot where the key belongs, for the caller to fill: it holds the key,
 * another one or none.  NULL: no memory. */
struct st_identity_slot* st_identity_place(struct st_identity_cache* c,
                                           uint32_t epoch, const void* key);
/* Frees the slots. */
void st_identity_destroy(struct st_identity_cache* c);
