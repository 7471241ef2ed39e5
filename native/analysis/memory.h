/* Memory of the importer: growable arrays, maps, and an arena.
 *
 * Problem: an importer allocates in hundreds of places, and each of these can
 * fail.  Here a failed allocation jumps to the function that has called
 * st_memory_catch (st_importer_feed and st_importer_finish).  The containers
 * stay valid, so everything can be freed by the owner.
 *
 *   ST_ARRAY(int64_t) a = {0};
 *   *ST_PUSH(&a) = 5;                    a.data[0] == 5, a.size == 1
 *
 *   struct st_map m = {0};               keys of 64 bits, values of 32 bits
 *   *st_map_at(&m, key) = 7;             0 where the key was not in the map
 *
 * Hostile keys: the hash of a map depends on the address of its slots, which
 * the author of a trace doesn't know.
 *
 * Limits: an array holds at most 2^31 - 1 elements; more count as a failed
 * allocation.
 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets where failed allocations of this thread jump to; NULL outside of the
 * importer's functions.  Returns the previous place. */
jmp_buf* st_memory_catch(jmp_buf* place);

/* Jumps to the place of st_memory_catch. */
_Noreturn void st_memory_fail(void);

/* Returns zeroed memory; never NULL. */
void* st_memory_new(size_t size);
/* Returns `data` with room for `count` elements of `size` bytes or more, and
 * updates the capacity. */
void* st_memory_grow(void* data, uint32_t* capacity, uint64_t count,
                     size_t size);

#define ST_ARRAY(type)       \
  struct {                   \
    type* data;              \
    uint32_t size, capacity; \
  }

/* Makes room for `n` more elements. */
#define ST_RESERVE(a, n)                                              \
  ((uint64_t)(a)->size + (n) > (a)->capacity                          \
       ? (void)((a)->data = st_memory_grow((a)->data, &(a)->capacity, \
                                           (uint64_t)(a)->size + (n), \
                                           sizeof *(a)->data))        \
       : (void)0)

/* Adds an element, whose content is undefined.  Returns its address. */
#define ST_PUSH(a) (ST_RESERVE(a, 1), (a)->data + (a)->size++)

struct st_map_slot {
  uint64_t key;
  uint32_t value;
  bool used;
};

struct st_map {
  struct st_map_slot* slots;
  uint32_t size, capacity;
};

/* Returns the address of the key's value, valid until the next call.  Adds the
 * key with the value 0 if it is not in the map. */
uint32_t* st_map_at(struct st_map* m, uint64_t key);
/* Returns the key's value; 0 if the key is not in the map. */
uint32_t st_map_get(const struct st_map* m, uint64_t key);
void st_map_free(struct st_map* m);

/* Bytes that stay at their address until the arena is freed. */
struct st_byte_arena {
  struct st_arena_block* last;
  size_t left; /* The unused bytes at the end of the last block. */
};

/* Returns freed memory, which the allocator keeps, to the system (only with
 * glibc). */
void st_memory_trim(void);

void* st_bytes_take(struct st_byte_arena* a, size_t size);
const uint8_t* st_bytes_copy(struct st_byte_arena* a, const void* data,
                             size_t size);
void st_bytes_free(struct st_byte_arena* a);

/* Mixes the bits of a number, for hashes. */
static inline uint64_t st_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Returns the key of an id that several owners (machines, or sources) use for
 * different things.  The ids of owner 0 are their own keys. */
static inline uint64_t st_owned_key(uint64_t id, uint32_t owner) {
  return owner ? id ^ st_mix(owner) : id;
}
