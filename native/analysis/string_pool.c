#include "string_pool.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const struct st_string_pool* p, const uint8_t* s,
                        size_t size) {
  uint64_t hash = (uintptr_t)p ^ size;
  while (size >= 8) {
    uint64_t word;
    memcpy(&word, s, 8);
    hash = st_mix(hash ^ word) + 0x9E3779B97F4A7C15u;
    s += 8;
    size -= 8;
  }
  uint64_t word = 0;
  if (size)
    memcpy(&word, s, size);
  return st_mix(hash ^ word);
}

/* Returns the size of the UTF-8 character at s; 0 if there is none. */
static size_t character(const uint8_t* s, const uint8_t* end) {
  size_t left = (size_t)(end - s);
  uint8_t c = *s;
  if (c < 0x80)
    return 1;
  size_t size = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
  if (c < 0xC2 || c > 0xF4 || size > left)
    return 0;
  for (size_t i = 1; i < size; i++) {
    if ((s[i] & 0xC0) != 0x80)
      return 0;
  }
  bool too_long = (c == 0xE0 && s[1] < 0xA0) || (c == 0xF0 && s[1] < 0x90);
  bool invalid = (c == 0xED && s[1] >= 0xA0) || (c == 0xF4 && s[1] >= 0x90);
  return too_long || invalid ? 0 : size;
}

static bool is_utf8(const uint8_t* s, const uint8_t* end) {
  while (s != end) {
    size_t size = character(s, end);
    if (!size)
      return false;
    s += size;
  }
  return true;
}

static void append(struct st_string_pool* p, const void* data, size_t size) {
  if (p->chars_size + size > p->chars_capacity) {
    uint64_t capacity = (p->chars_size + size) * 3 / 2 + 64;
    char* chars = realloc(p->chars, (size_t)capacity);
    if (!chars)
      st_memory_fail();
    p->chars = chars;
    p->chars_capacity = capacity;
  }
  if (size)
    memcpy(p->chars + p->chars_size, data, size);
  p->chars_size += size;
}

static void add_entry(struct st_string_pool* p, uint64_t hash, const void* data,
                      size_t size) {
  ST_RESERVE(&p->offsets, 1);
  ST_RESERVE(&p->hashes, 1);
  append(p, data, size);
  *ST_PUSH(&p->offsets) = (int64_t)p->chars_size;
  *ST_PUSH(&p->hashes) = hash;
}

/* Adds a string that isn't UTF-8, with its invalid bytes replaced. */
static st_string add_converted(struct st_string_pool* p, const uint8_t* s,
                               const uint8_t* end) {
  static const char kReplacement[] = "\xEF\xBF\xBD";
  char* text = st_memory_new((size_t)(end - s) * 3);
  size_t n = 0;
  while (s != end) {
    size_t size = character(s, end);
    memcpy(text + n, size ? (const char*)s : kReplacement, size ? size : 3);
    n += size ? size : 3;
    s += size ? size : 1;
  }
  st_string id = st_string_add(p, text, n);
  free(text);
  return id;
}

void st_string_pool_init(struct st_string_pool* p) {
  *p = (struct st_string_pool){0};
  *ST_PUSH(&p->offsets) = 0;
  append(p, NULL, 0);
  add_entry(p, 0, "", 0);
}

static void grow_slots(struct st_string_pool* p) {
  uint32_t count = p->slot_count ? p->slot_count * 2 : 256;
  uint32_t* slots = st_memory_new((size_t)count * sizeof *slots);
  for (uint32_t id = 1; id < p->hashes.size; id++) {
    uint32_t i = (uint32_t)p->hashes.data[id] & (count - 1);
    while (slots[i])
      i = (i + 1) & (count - 1);
    slots[i] = id;
  }
  free(p->slots);
  p->slots = slots;
  p->slot_count = count;
}

static bool is_same(const struct st_string_pool* p, uint32_t id,
                    const void* data, size_t size) {
  size_t length;
  const char* text = st_string_text(p, id, &length);
  return length == size && memcmp(text, data, size) == 0;
}

/* Returns the slot of a string, or the empty slot where it belongs. */
static uint32_t* find_slot(const struct st_string_pool* p, uint64_t hash,
                           const void* data, size_t size) {
  uint32_t i = (uint32_t)hash & (p->slot_count - 1);
  while (p->slots[i]) {
    uint32_t id = p->slots[i];
    if (p->hashes.data[id] == hash && is_same(p, id, data, size))
      break;
    i = (i + 1) & (p->slot_count - 1);
  }
  return &p->slots[i];
}

st_string st_string_add(struct st_string_pool* p, const void* data,
                        size_t size) {
  if ((uint64_t)p->hashes.size * 4 >= (uint64_t)p->slot_count * 3)
    grow_slots(p);
  if (!size)
    data = "";
  uint64_t hash = hash_of(p, data, size);
  uint32_t* slot = find_slot(p, hash, data, size);
  if (*slot)
    return *slot;
  const uint8_t* bytes = data;
  if (!is_utf8(bytes, bytes + size))
    return add_converted(p, bytes, bytes + size);
  uint32_t id = p->hashes.size;
  add_entry(p, hash, data, size);
  return *slot = id;
}

st_string st_string_find(const struct st_string_pool* p, const void* data,
                         size_t size) {
  if (!size)
    data = "";
  return p->slot_count ? *find_slot(p, hash_of(p, data, size), data, size) : 0;
}

st_string st_string_of(struct st_string_pool* p, const char* text) {
  return st_string_add(p, text, strlen(text));
}

const char* st_string_text(const struct st_string_pool* p, st_string id,
                           size_t* size) {
  *size = (size_t)(p->offsets.data[id + 1] - p->offsets.data[id]);
  return p->chars + p->offsets.data[id];
}

void st_string_pool_free(struct st_string_pool* p) {
  free(p->offsets.data);
  free(p->hashes.data);
  free(p->chars);
  free(p->slots);
  *p = (struct st_string_pool){0};
}
