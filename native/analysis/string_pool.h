/* String pool: each different string once, in the layout of Arrow's large
 * UTF-8 arrays.
 *
 *   chars    | w o r k s l e e p ...
 *   offsets  | 0 0 4 9 ...         string i is chars[offsets[i], offsets[i + 1])
 *
 * String 0 is the empty placeholder of "no string" (NULL); an empty string has
 * an id of its own.  Bytes that are not UTF-8 become U+FFFD, because Arrow and
 * databases refuse them.
 */
#pragma once

#include "memory.h"

typedef uint32_t st_string;

struct st_string_pool {
  ST_ARRAY(int64_t) offsets;
  ST_ARRAY(uint64_t) hashes;
  char* chars;
  uint64_t chars_size, chars_capacity;
  uint32_t* slots; /* The ids by hash; 0 is an empty slot. */
  uint32_t slot_count;
};

void st_string_pool_init(struct st_string_pool* p);
/* Returns the id of a string, which is added if it is new. */
st_string st_string_add(struct st_string_pool* p, const void* data,
                        size_t size);
st_string st_string_of(struct st_string_pool* p, const char* text);
/* Returns the id of a string; 0 if the pool doesn't have it. */
st_string st_string_find(const struct st_string_pool* p, const void* data,
                         size_t size);
/* Returns the characters of a string, which end with no zero. */
const char* st_string_text(const struct st_string_pool* p, st_string id,
                           size_t* size);
/* Returns the number of strings, including the placeholder. */
static inline uint32_t st_string_count(const struct st_string_pool* p) {
  return p->offsets.size - 1;
}
void st_string_pool_free(struct st_string_pool* p);
