#include "identity_cache.h"

#include <stdbool.h>
#include <stdlib.h>

enum { CONFLICTS_TO_GROW = 32 };

static struct st_identity_slot* slot_of(const struct st_identity_cache* c,
                                        const void* key) {
  return &c->slots[st_identity_hash(key) & c->mask];
}

/* When the cache grows, two entries never get the same new slot: they had
 * different old slots, and the bits of the hash that select an old slot also
 * select the new one. */
static bool resize(struct st_identity_cache* c, uint32_t capacity) {
  struct st_identity_slot* slots = calloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  struct st_identity_cache grown = {slots, capacity - 1, 0};
  for (uint32_t i = 0; c->slots && i <= c->mask; i++) {
    if (c->slots[i].key)
      *slot_of(&grown, c->slots[i].key) = c->slots[i];
  }
  free(c->slots);
  *c = grown;
  return true;
}

static bool is_crowded(struct st_identity_cache* c, uint32_t epoch,
                       const void* key) {
  const struct st_identity_slot* s = slot_of(c, key);
  bool conflict = s->key && s->key != key && s->epoch == epoch;
  return conflict && ++c->conflicts > CONFLICTS_TO_GROW &&
         c->mask + 1 < ST_MAX_IDENTITIES;
}

struct st_identity_slot* st_identity_place(struct st_identity_cache* c,
                                           uint32_t epoch, const void* key) {
  if (!c->slots && !resize(c, ST_MIN_IDENTITIES))
    return NULL;
  if (is_crowded(c, epoch, key))
    resize(c, 2 * (c->mask + 1));
  return slot_of(c, key);
}

void st_identity_destroy(struct st_identity_cache* c) {
  free(c->slots);
  *c = (struct st_identity_cache){0};
}
