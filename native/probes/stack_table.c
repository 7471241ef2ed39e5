#include "probes/stack_table.h"

#include <stdlib.h>
#include <string.h>

/* A growing array of elements of one size. */
struct array {
  void* data;
  size_t count, capacity, element;
};

/* A hash table of numbers, with open addressing.  The number 0 is a free
 * slot. */
struct hash {
  uint32_t* slots;
  size_t capacity, count;
};

/* A stack: the index of its first frame in `numbers`, the number of its frames,
 * and the number of its samples. */
struct stack {
  size_t first;
  uint32_t depth, hits;
};

struct instruction {
  uint64_t code, address;
  uint32_t frame;
};

struct st_stack_table {
  struct array instructions; /* struct instruction */
  struct array frames;       /* struct st_table_frame */
  struct array stacks;       /* struct stack */
  struct array numbers;      /* uint32_t: the frames of all stacks */
  struct hash by_instruction, by_line, by_stack;
};

enum { FIRST_CAPACITY = 1024 };

static uint64_t mix(uint64_t h, uint64_t word) {
  h = (h ^ word) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

/* Appends room for `count` elements.  Returns NULL when out of memory. */
static void* append(struct array* a, size_t count) {
  if (a->count + count > a->capacity) {
    size_t capacity = (a->capacity ? a->capacity : FIRST_CAPACITY) * 2 + count;
    void* data = realloc(a->data, capacity * a->element);
    if (!data)
      return NULL;
    a->data = data;
    a->capacity = capacity;
  }
  a->count += count;
  return (char*)a->data + (a->count - count) * a->element;
}

typedef uint64_t (*hash_of)(const struct st_stack_table*, uint32_t number);

static uint64_t hash_of_instruction(const struct st_stack_table* t,
                                    uint32_t number) {
  const struct instruction* i =
      (const struct instruction*)t->instructions.data + number - 1;
  return mix(mix(0, i->code), i->address);
}

static uint64_t hash_of_line(const struct st_stack_table* t, uint32_t number) {
  struct st_table_frame f = st_stack_table_frame(t, number);
  return mix(mix(0, f.function), (uint64_t)f.line);
}

static uint64_t hash_of_frames(const uint32_t* frames, uint32_t depth) {
  uint64_t h = depth;
  for (uint32_t i = 0; i < depth; i++)
    h = mix(h, frames[i]);
  return h;
}

static uint64_t hash_of_stack(const struct st_stack_table* t, uint32_t number) {
  uint32_t depth;
  const uint32_t* frames = st_stack_table_frames(t, number, &depth);
  return hash_of_frames(frames, depth);
}

static void put(struct hash* h, uint64_t hash, uint32_t number) {
  size_t at = hash & (h->capacity - 1);
  while (h->slots[at])
    at = (at + 1) & (h->capacity - 1);
  h->slots[at] = number;
}

/* Makes room for one more number: at most half of the slots are used.  Returns
 * false when out of memory. */
static bool reserve(const struct st_stack_table* t, struct hash* h,
                    hash_of hash) {
  if (h->count * 2 < h->capacity)
    return true;
  struct hash grown = {
      .capacity = h->capacity ? h->capacity * 2 : FIRST_CAPACITY,
      .count = h->count};
  grown.slots = calloc(grown.capacity, sizeof *grown.slots);
  if (!grown.slots)
    return false;
  for (size_t i = 0; i < h->capacity; i++)
    if (h->slots[i])
      put(&grown, hash(t, h->slots[i]), h->slots[i]);
  free(h->slots);
  *h = grown;
  return true;
}

static void insert(struct hash* h, uint64_t hash, uint32_t number) {
  put(h, hash, number);
  h->count++;
}

struct st_stack_table* st_stack_table_create(void) {
  struct st_stack_table* t = calloc(1, sizeof *t);
  if (!t)
    return NULL;
  t->instructions.element = sizeof(struct instruction);
  t->frames.element = sizeof(struct st_table_frame);
  t->stacks.element = sizeof(struct stack);
  t->numbers.element = sizeof(uint32_t);
  return t;
}

static void empty(struct hash* h) {
  free(h->slots);
  *h = (struct hash){0};
}

static void forget_instructions(struct st_stack_table* t) {
  empty(&t->by_instruction);
  t->instructions.count = 0;
}

void st_stack_table_clear(struct st_stack_table* t) {
  forget_instructions(t);
  empty(&t->by_line);
  empty(&t->by_stack);
  t->frames.count = 0;
  t->stacks.count = t->numbers.count = 0;
}

void st_stack_table_destroy(struct st_stack_table* t) {
  st_stack_table_clear(t);
  free(t->instructions.data);
  free(t->frames.data);
  free(t->stacks.data);
  free(t->numbers.data);
  free(t);
}

static const struct instruction* find_instruction(
    const struct st_stack_table* t, uint64_t code, uint64_t address) {
  const struct hash* h = &t->by_instruction;
  const struct instruction* all = t->instructions.data;
  size_t mask = h->capacity - 1;
  if (!h->capacity)
    return NULL;
  for (size_t at = mix(mix(0, code), address) & mask; h->slots[at];
       at = (at + 1) & mask) {
    const struct instruction* i = &all[h->slots[at] - 1];
    if (i->code == code && i->address == address)
      return i;
  }
  return NULL;
}

uint32_t st_stack_table_known(const struct st_stack_table* t, uint64_t code,
                              uint64_t instruction) {
  const struct instruction* i = find_instruction(t, code, instruction);
  return i ? i->frame : 0;
}

static uint32_t find_line(const struct st_stack_table* t, uint64_t function,
                          int32_t line) {
  const struct hash* h = &t->by_line;
  size_t mask = h->capacity - 1;
  if (!h->capacity)
    return 0;
  for (size_t at = mix(mix(0, function), (uint64_t)line) & mask; h->slots[at];
       at = (at + 1) & mask) {
    struct st_table_frame f = st_stack_table_frame(t, h->slots[at]);
    if (f.function == function && f.line == line)
      return h->slots[at];
  }
  return 0;
}

static uint32_t add_frame(struct st_stack_table* t, uint64_t function,
                          int32_t line) {
  uint32_t found = find_line(t, function, line);
  if (found || t->frames.count == ST_MAX_FRAMES)
    return found;
  struct st_table_frame* frame =
      reserve(t, &t->by_line, hash_of_line) ? append(&t->frames, 1) : NULL;
  if (!frame)
    return 0;
  *frame = (struct st_table_frame){function, line};
  uint32_t number = (uint32_t)t->frames.count;
  insert(&t->by_line, hash_of_line(t, number), number);
  return number;
}

uint32_t st_stack_table_add(struct st_stack_table* t, uint64_t code,
                            uint64_t instruction, uint64_t function,
                            int32_t line) {
  uint32_t frame = add_frame(t, function, line);
  if (frame && t->instructions.count == ST_MAX_FRAMES)
    forget_instructions(t);
  if (!frame || !reserve(t, &t->by_instruction, hash_of_instruction))
    return 0;
  struct instruction* added = append(&t->instructions, 1);
  if (!added)
    return 0;
  *added = (struct instruction){code, instruction, frame};
  uint32_t number = (uint32_t)t->instructions.count;
  insert(&t->by_instruction, hash_of_instruction(t, number), number);
  return frame;
}

static uint32_t find_stack(const struct st_stack_table* t,
                           const uint32_t* frames, uint32_t depth) {
  const struct hash* h = &t->by_stack;
  size_t mask = h->capacity - 1;
  if (!h->capacity)
    return 0;
  for (size_t at = hash_of_frames(frames, depth) & mask; h->slots[at];
       at = (at + 1) & mask) {
    uint32_t its_depth;
    const uint32_t* its = st_stack_table_frames(t, h->slots[at], &its_depth);
    if (its_depth == depth && !memcmp(its, frames, depth * sizeof *its))
      return h->slots[at];
  }
  return 0;
}

uint32_t st_stack_table_stack(struct st_stack_table* t, const uint32_t* frames,
                              uint32_t depth) {
  uint32_t found = find_stack(t, frames, depth);
  if (found || t->stacks.count == ST_MAX_STACKS ||
      !reserve(t, &t->by_stack, hash_of_stack))
    return found;
  uint32_t* numbers = append(&t->numbers, depth);
  struct stack* stack = numbers ? append(&t->stacks, 1) : NULL;
  if (!stack)
    return 0;
  memcpy(numbers, frames, depth * sizeof *numbers);
  *stack = (struct stack){t->numbers.count - depth, depth, 0};
  uint32_t number = (uint32_t)t->stacks.count;
  insert(&t->by_stack, hash_of_frames(frames, depth), number);
  return number;
}

uint32_t st_stack_table_frame_count(const struct st_stack_table* t) {
  return (uint32_t)t->frames.count;
}

uint32_t st_stack_table_stack_count(const struct st_stack_table* t) {
  return (uint32_t)t->stacks.count;
}

struct st_table_frame st_stack_table_frame(const struct st_stack_table* t,
                                           uint32_t number) {
  return ((const struct st_table_frame*)t->frames.data)[number - 1];
}

const uint32_t* st_stack_table_frames(const struct st_stack_table* t,
                                      uint32_t number, uint32_t* depth) {
  const struct stack* stack = (const struct stack*)t->stacks.data + number - 1;
  *depth = stack->depth;
  return (const uint32_t*)t->numbers.data + stack->first;
}

static struct stack* stack_of(const struct st_stack_table* t, uint32_t number) {
  return (struct stack*)t->stacks.data + number - 1;
}

void st_stack_table_hit(struct st_stack_table* t, uint32_t number,
                        uint32_t weight) {
  stack_of(t, number)->hits += weight;
}

uint32_t st_stack_table_hits(const struct st_stack_table* t, uint32_t number) {
  return stack_of(t, number)->hits;
}
