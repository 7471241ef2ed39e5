#include "memory.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>

enum { BLOCK_SIZE = 1 << 16, MIN_CAPACITY = 8 };

static _Thread_local jmp_buf* failed;

jmp_buf* st_memory_catch(jmp_buf* place) {
  jmp_buf* previous = failed;
  failed = place;
  return previous;
}

_Noreturn void st_memory_fail(void) {
  if (!failed)
    abort();
  longjmp(*failed, 1);
}

void* st_memory_new(size_t size) {
  void* data = calloc(1, size ? size : 1);
  if (!data)
    st_memory_fail();
  return data;
}

void* st_memory_grow(void* data, uint32_t* capacity, uint64_t count,
                     size_t size) {
  uint64_t wanted = *capacity + (uint64_t)*capacity / 2;
  if (wanted < count)
    wanted = count;
  if (wanted < MIN_CAPACITY)
    wanted = MIN_CAPACITY;
  if (count > INT32_MAX)
    st_memory_fail();
  if (wanted > INT32_MAX)
    wanted = INT32_MAX;
  data = realloc(data, (size_t)wanted * size);
  if (!data)
    st_memory_fail();
  *capacity = (uint32_t)wanted;
  return data;
}

static struct st_map_slot* find(const struct st_map* m, uint64_t key) {
  uint32_t mask = m->capacity - 1;
  uint32_t i = (uint32_t)st_mix(key ^ (uintptr_t)m->slots) & mask;
  while (m->slots[i].used && m->slots[i].key != key)
    i = (i + 1) & mask;
  return &m->slots[i];
}

static void grow_map(struct st_map* m) {
  uint64_t capacity = m->capacity ? (uint64_t)m->capacity * 2 : MIN_CAPACITY;
  if (capacity > (uint64_t)1 << 31)
    st_memory_fail();
  struct st_map larger = {
      st_memory_new((size_t)capacity * sizeof *larger.slots), m->size,
      (uint32_t)capacity};
  for (uint32_t i = 0; i < m->capacity; i++) {
    if (m->slots[i].used)
      *find(&larger, m->slots[i].key) = m->slots[i];
  }
  free(m->slots);
  *m = larger;
}

uint32_t* st_map_at(struct st_map* m, uint64_t key) {
  if ((uint64_t)m->size * 4 >= (uint64_t)m->capacity * 3)
    grow_map(m);
  struct st_map_slot* slot = find(m, key);
  if (!slot->used) {
    *slot = (struct st_map_slot){key, 0, true};
    m->size++;
  }
  return &slot->value;
}

uint32_t st_map_get(const struct st_map* m, uint64_t key) {
  return m->capacity ? find(m, key)->value : 0;
}

void st_map_free(struct st_map* m) {
  free(m->slots);
  *m = (struct st_map){0};
}

struct st_arena_block {
  struct st_arena_block* previous;
  size_t size;
  _Alignas(8) uint8_t bytes[];
};

void st_memory_trim(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void* st_bytes_take(struct st_byte_arena* a, size_t size) {
  if (size > SIZE_MAX / 2)
    st_memory_fail();
  size = (size + 7) & ~(size_t)7;
  if (size > a->left || !a->last) {
    size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    struct st_arena_block* block = malloc(sizeof *block + room);
    if (!block)
      st_memory_fail();
    block->previous = a->last;
    block->size = room;
    a->last = block;
    a->left = room;
  }
  uint8_t* taken = a->last->bytes + a->last->size - a->left;
  a->left -= size;
  return taken;
}

const uint8_t* st_bytes_copy(struct st_byte_arena* a, const void* data,
                             size_t size) {
  uint8_t* copy = st_bytes_take(a, size);
  if (size)
    memcpy(copy, data, size);
  return copy;
}

void st_bytes_free(struct st_byte_arena* a) {
  while (a->last) {
    struct st_arena_block* previous = a->last->previous;
    free(a->last);
    a->last = previous;
  }
  a->left = 0;
}
