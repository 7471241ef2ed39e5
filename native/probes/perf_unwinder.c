#include "probes/perf_unwinder.h"

#include <stdlib.h>
#include <string.h>

#include "probes/eh_frame.h"
#include "probes/perf_register.h"

enum { RULES_LOG2 = 11, RULES = 1 << RULES_LOG2 };

/* The rules at an address of a file. */
struct entry {
  const struct st_elf_file* file; /* NULL: none. */
  uint64_t address;
  bool found;
  struct st_unwind_rules rules;
};

struct st_perf_unwinder {
  struct st_perf_code* code; /* Sorted by space and start. */
  uint32_t count, capacity;
  struct entry* entries;
};

struct st_perf_unwinder* st_perf_unwinder_create(void) {
  struct st_perf_unwinder* u = calloc(1, sizeof *u);
  if (u)
    u->entries = calloc(RULES, sizeof *u->entries);
  if (u && !u->entries) {
    free(u);
    return NULL;
  }
  return u;
}

void st_perf_unwinder_destroy(struct st_perf_unwinder* u) {
  if (!u)
    return;
  free(u->code);
  free(u->entries);
  free(u);
}

/* --- Code ----------------------------------------------------------------- */

void st_perf_unwinder_clear(struct st_perf_unwinder* u) {
  u->count = 0;
  memset(u->entries, 0, RULES * sizeof *u->entries);
}

/* Returns the index of the first code that ends after an address. */
static uint32_t place_of(const struct st_perf_unwinder* u, uint64_t space,
                         uint64_t address) {
  uint32_t low = 0, high = u->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const struct st_perf_code* c = &u->code[middle];
    if (c->space < space || (c->space == space && c->end <= address))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static const struct st_perf_code* code_at(const struct st_perf_unwinder* u,
                                          uint64_t space, uint64_t address) {
  uint32_t at = place_of(u, space, address);
  const struct st_perf_code* c = &u->code[at];
  return at < u->count && c->space == space && c->start <= address ? c : NULL;
}

static bool reserve(struct st_perf_unwinder* u) {
  if (u->count == ST_PERF_MAX_CODE)
    st_perf_unwinder_clear(u);
  if (u->count < u->capacity)
    return true;
  uint32_t capacity = u->capacity ? u->capacity * 2 : 64;
  void* grown = realloc(u->code, capacity * sizeof *u->code);
  if (!grown)
    return false;
  u->code = grown;
  u->capacity = capacity;
  return true;
}

bool st_perf_unwinder_add(struct st_perf_unwinder* u,
                          const struct st_perf_code* code) {
  if (!reserve(u))
    return false;
  uint32_t at = place_of(u, code->space, code->start), after = at;
  while (after < u->count && u->code[after].space == code->space &&
         u->code[after].start < code->end)
    after++;
  memmove(&u->code[at + 1], &u->code[after],
          (u->count - after) * sizeof *u->code);
  u->code[at] = *code;
  u->count += 1 + at - after;
  return true;
}

/* --- Callers -------------------------------------------------------------- */

static const struct st_unwind_rules* rules_at(struct st_perf_unwinder* u,
                                              const struct st_elf_file* file,
                                              uint64_t address) {
  uint64_t mixed = (address ^ (uint64_t)(uintptr_t)file << 20) *
                   UINT64_C(0x9E3779B97F4A7C15);
  struct entry* e = &u->entries[mixed >> (64 - RULES_LOG2)];
  if (e->file != file || e->address != address) {
    struct st_memory tables = st_elf_file_tables(file);
    e->file = file;
    e->address = address;
    e->found = st_eh_frame_find(&tables, file->tables, address, &e->rules);
  }
  return e->found ? &e->rules : NULL;
}

/* The sample's copy of a stack. */
struct stack_copy {
  uint64_t start;
  const uint8_t* bytes;
  uint32_t size;
};

static bool read_stack(void* self, uint64_t address, void* to, size_t size) {
  const struct stack_copy* s = self;
  uint64_t at = address - s->start;
  if (address < s->start || at > s->size || size > s->size - at)
    return false;
  memcpy(to, s->bytes + at, size);
  return true;
}

/* Leaves code without rules; returns whether that is possible. */
static bool leave_stub(const struct st_perf_unwinder* u, uint64_t space,
                       const struct st_memory* stack, struct st_registers* r,
                       uint64_t* missing) {
  struct st_registers caller = *r;
  if (r->is_call || !st_eh_frame_leave_stub(stack, &caller))
    return false;
  if (!code_at(u, space, caller.pc - 1)) {
    *missing = caller.pc - 1;
    return false;
  }
  *r = caller;
  return true;
}

/* Replaces the registers by those of the caller. */
static enum st_perf_unwind_error leave(struct st_perf_unwinder* u,
                                       const struct st_perf_code* code,
                                       const struct st_memory* stack,
                                       struct st_registers* r,
                                       uint64_t* missing) {
  uint64_t address = r->pc - r->is_call - code->bias;
  const struct st_unwind_rules* rules =
      code->file ? rules_at(u, code->file, address) : NULL;
  if (rules)
    return st_eh_frame_apply(stack, rules, r) ? ST_PERF_UNWIND_COMPLETE
                                              : ST_PERF_UNWIND_MEMORY;
  if (leave_stub(u, code->space, stack, r, missing))
    return ST_PERF_UNWIND_COMPLETE;
  return *missing ? ST_PERF_UNWIND_CODE : ST_PERF_UNWIND_TABLES;
}

struct st_perf_unwound st_perf_unwind(struct st_perf_unwinder* u,
                                      uint64_t space,
                                      const struct st_perf_record* sample,
                                      uint64_t* pcs, uint32_t room) {
  struct st_registers r;
  struct st_perf_unwound found = {0};
  st_perf_registers(sample->registers, &r);
  struct stack_copy copy = {r.values[ST_UNWIND_SP], sample->memory,
                            sample->memory_size};
  const struct st_memory stack = {.read = read_stack, .self = &copy};
  while (r.pc && !found.error) {
    uint64_t pc = r.pc - r.is_call;
    const struct st_perf_code* code = code_at(u, space, pc);
    if (found.depth == room || pc >> 63) { /* No program has such addresses. */
      found.error = pc >> 63 ? ST_PERF_UNWIND_MEMORY : ST_PERF_UNWIND_DEPTH;
      break;
    }
    pcs[found.depth++] = pc;
    if (code) {
      found.error = leave(u, code, &stack, &r, &found.missing);
    } else {
      found.error = ST_PERF_UNWIND_CODE;
      found.missing = pc;
    }
  }
  return found;
}
