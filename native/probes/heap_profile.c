#include "probes/heap_profile.h"

#include <stdlib.h>
#include <string.h>

/* A live sample in one word: weight, stack, heap. */
enum { HEAP_BITS = 2, STACK_BITS = 20, WEIGHT_BITS = 42 };

static const uint64_t kMaxWeight = ((uint64_t)1 << WEIGHT_BITS) - 1;

struct sample {
  uint64_t weight;
  uint32_t stack, heap;
};

static uint64_t pack(uint64_t weight, uint32_t stack, uint32_t heap) {
  return weight << (STACK_BITS + HEAP_BITS) | (uint64_t)stack << HEAP_BITS |
         heap;
}

static struct sample unpack(uint64_t value) {
  return (struct sample){
      .weight = value >> (STACK_BITS + HEAP_BITS),
      .stack = (uint32_t)(value >> HEAP_BITS) & ST_HEAP_MAX_STACK,
      .heap = (uint32_t)value & ((1 << HEAP_BITS) - 1),
  };
}

void st_heap_profile_init(struct st_heap_profile* p) {
  p->live.limit = ST_HEAP_MAX_LIVE;
}

void st_heap_profile_clear(struct st_heap_profile* p) {
  st_address_table_clear(&p->live);
  memset(&p->filter, 0, sizeof p->filter);
  for (int i = 0; i < ST_HEAPS; i++) {
    free(p->heaps[i].stacks);
    p->heaps[i] = (struct st_heap){0};
  }
  p->drops = (struct st_heap_drops){0};
  p->changes = 0;
}

/* Returns the totals of a stack; NULL when out of memory. */
static struct st_heap_stack* totals(struct st_heap* heap, uint32_t stack) {
  if (stack >= heap->capacity) {
    uint32_t capacity = (stack + 64) * 2;
    struct st_heap_stack* grown =
        realloc(heap->stacks, capacity * sizeof *grown);
    if (!grown)
      return NULL;
    memset(grown + heap->capacity, 0,
           (capacity - heap->capacity) * sizeof *grown);
    heap->stacks = grown;
    heap->capacity = capacity;
  }
  return &heap->stacks[stack];
}

static struct st_heap_sum live_of(const struct st_heap_stack* s) {
  return (struct st_heap_sum){s->allocated.bytes - s->freed.bytes,
                              s->allocated.samples - s->freed.samples};
}

struct st_heap_sum st_heap_at_max(const struct st_heap* heap,
                                  const struct st_heap_stack* stack) {
  return stack->changed <= heap->max_change ? live_of(stack) : stack->at_max;
}

/* Called before the totals of a stack change. */
static void begin_change(struct st_heap_profile* p, struct st_heap* heap,
                         struct st_heap_stack* stack) {
  stack->at_max = st_heap_at_max(heap, stack);
  stack->changed = ++p->changes;
  stack->is_new_to_dumps = true;
}

static void count_freed(struct st_heap_profile* p, struct sample sample) {
  struct st_heap* heap = &p->heaps[sample.heap];
  struct st_heap_stack* stack = &heap->stacks[sample.stack];
  begin_change(p, heap, stack);
  stack->freed.bytes += sample.weight;
  stack->freed.samples++;
  heap->live -= sample.weight;
}

static void update_max(struct st_heap_profile* p, struct st_heap* heap) {
  if (heap->live <= heap->max)
    return;
  heap->max = heap->live;
  heap->max_change = p->changes;
}

static bool drop(uint64_t* reason) {
  ++*reason;
  return false;
}

bool st_heap_add(struct st_heap_profile* p, uint32_t heap_number,
                 uint32_t stack_number, uint64_t address, uint64_t weight) {
  struct st_heap* heap = &p->heaps[heap_number];
  struct st_heap_stack* stack = totals(heap, stack_number);
  if (!stack)
    return drop(&p->drops.out_of_memory);
  struct st_heap_block lost;
  st_heap_remove(p, address, &lost);
  if (p->live.count == p->live.limit)
    return drop(&p->drops.live_full);
  weight = weight < kMaxWeight ? weight : kMaxWeight;
  uint64_t value = pack(weight, stack_number, heap_number);
  if (!st_address_table_put(&p->live, address, value))
    return drop(&p->drops.out_of_memory);
  st_filter_add(&p->filter, address);
  begin_change(p, heap, stack);
  stack->allocated.bytes += weight;
  stack->allocated.samples++;
  heap->live += weight;
  update_max(p, heap);
  return true;
}

bool st_heap_remove(struct st_heap_profile* p, uint64_t address,
                    struct st_heap_block* block) {
  block->address = address;
  if (!st_address_table_take(&p->live, address, &block->value))
    return false;
  st_filter_remove(&p->filter, address);
  count_freed(p, unpack(block->value));
  return true;
}

/* Whether the profile is still that of the sample: a block may be put back after
 * another thread has started a new profile. */
static bool is_counted(const struct st_heap* heap, struct sample sample) {
  return sample.stack < heap->capacity &&
         heap->stacks[sample.stack].freed.samples > 0 &&
         heap->stacks[sample.stack].freed.bytes >= sample.weight;
}

void st_heap_put_back(struct st_heap_profile* p,
                      const struct st_heap_block* block) {
  struct sample sample = unpack(block->value);
  struct st_heap* heap = &p->heaps[sample.heap];
  if (!is_counted(heap, sample) ||
      !st_address_table_put(&p->live, block->address, block->value))
    return;
  struct st_heap_stack* stack = &heap->stacks[sample.stack];
  st_filter_add(&p->filter, block->address);
  begin_change(p, heap, stack);
  stack->freed.bytes -= sample.weight;
  stack->freed.samples--;
  heap->live += sample.weight;
}

uint32_t st_heap_next_changed(struct st_heap* heap, uint32_t from) {
  for (uint32_t i = from; i < heap->capacity; i++) {
    if (heap->stacks[i].is_new_to_dumps) {
      heap->stacks[i].is_new_to_dumps = false;
      return i;
    }
  }
  return 0;
}

void st_heap_dump_all(struct st_heap* heap) {
  for (uint32_t i = 1; i < heap->capacity; i++)
    heap->stacks[i].is_new_to_dumps = heap->stacks[i].changed != 0;
}
