#include "keys.h"

#include <stdlib.h>

uint32_t st_key_number(struct st_keys* k, struct st_key key) {
  uint64_t hash = st_mix((uintptr_t)k);
  hash = st_mix(st_mix(st_mix(hash ^ key.a) ^ key.b) ^ key.c);
  for (;; hash++) {
    uint32_t* number = st_map_at(&k->by_hash, hash);
    if (!*number) {
      *ST_PUSH(&k->keys) = key;
      return (*number = k->keys.size) - 1;
    }
    const struct st_key* known = &k->keys.data[*number - 1];
    if (known->a == key.a && known->b == key.b && known->c == key.c)
      return *number - 1;
  }
}

void st_keys_free(struct st_keys* k) {
  st_map_free(&k->by_hash);
  free(k->keys.data);
  *k = (struct st_keys){0};
}
