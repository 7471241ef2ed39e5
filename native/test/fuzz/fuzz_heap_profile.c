/* Fuzzes the heap profile: each three bytes allocate or free a block.  Live
 * bytes, totals and maxima must agree with a simple model. */
#define CHECK_ABORTS
#include <string.h>

#include "check.h"
#include "probes/heap_profile.h"

enum { BLOCKS = 64, STACKS = 8 };

struct model {
  uint64_t weights[BLOCKS];
  uint32_t stacks[BLOCKS];
  uint64_t live[STACKS], at_max[STACKS];
  uint64_t total, max;
};

static uint64_t address_of(uint32_t block) {
  /* Blocks that share counters of the filter, and homes in the table. */
  return 0x10000 + ((uint64_t)(block % 8) << 22) + (block / 8) * 16u;
}

static void forget(struct model* m, uint32_t block) {
  m->live[m->stacks[block]] -= m->weights[block];
  m->total -= m->weights[block];
  m->weights[block] = 0;
}

static void step(struct st_heap_profile* p, struct model* m,
                 const uint8_t* bytes) {
  uint32_t block = bytes[0] % BLOCKS, stack = bytes[1] % STACKS;
  struct st_heap_block removed;
  if (bytes[0] & 0x80) {
    bool found = st_heap_remove(p, address_of(block), &removed);
    CHECK_EQ(found, m->weights[block] != 0);
    if (found && bytes[0] & 0x40)
      st_heap_put_back(p, &removed);
    else if (found)
      forget(m, block);
    return;
  }
  uint64_t weight = 1 + ((uint64_t)bytes[2] << (bytes[1] >> 4));
  CHECK(st_heap_add(p, 0, 1 + stack, address_of(block), weight));
  if (m->weights[block])
    forget(m, block);
  m->weights[block] = weight;
  m->stacks[block] = stack;
  m->live[stack] += weight;
  m->total += weight;
  if (m->total > m->max) {
    m->max = m->total;
    memcpy(m->at_max, m->live, sizeof m->live);
  }
}

static void compare(const struct st_heap_profile* p, const struct model* m) {
  const struct st_heap* heap = &p->heaps[0];
  CHECK_EQ(heap->live, m->total);
  CHECK_EQ(heap->max, m->max);
  for (uint32_t i = 0; i < STACKS && 1 + i < heap->capacity; i++) {
    const struct st_heap_stack* s = &heap->stacks[1 + i];
    CHECK_EQ(s->allocated.bytes - s->freed.bytes, m->live[i]);
    CHECK_EQ(st_heap_at_max(heap, s).bytes, m->at_max[i]);
  }
  for (uint32_t i = 0; i < BLOCKS; i++)
    CHECK(!m->weights[i] ||
          st_heap_is_sampled(p, (const void*)(uintptr_t)address_of(i)));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static struct st_heap_profile p;
  struct model m = {0};
  st_heap_profile_init(&p);
  for (; size >= 3; data += 3, size -= 3)
    step(&p, &m, data);
  compare(&p, &m);
  st_heap_profile_clear(&p);
  return 0;
}
