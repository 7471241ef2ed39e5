#include "probes/code_map.h"

#include <stdlib.h>
#include <string.h>

enum { RULES = 2048 };

/* The rules at an address of code. */
struct entry {
  uint64_t pc; /* 0: none. */
  bool found;
  struct st_unwind_rules rules;
};

struct st_code_map {
  struct st_code_range ranges[ST_MAP_MAX_RANGES];
  int range_count;
  uint64_t loops[ST_MAP_MAX_LOOPS];
  int loop_count;
  uint64_t unknown;
  struct entry entries[RULES];
};

struct st_code_map* st_code_map_create(void) {
  return calloc(1, sizeof(struct st_code_map));
}

void st_code_map_destroy(struct st_code_map* m) {
  free(m);
}

static int limited(int count, int most) {
  return count < most ? count : most;
}

static int by_start(const void* a, const void* b) {
  const struct st_code_range *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

void st_code_map_set(struct st_code_map* m, const struct st_code_range* ranges,
                     int range_count, const uint64_t* loops, int loop_count) {
  m->range_count = limited(range_count, ST_MAP_MAX_RANGES);
  m->loop_count = limited(loop_count, ST_MAP_MAX_LOOPS);
  memcpy(m->ranges, ranges, (size_t)m->range_count * sizeof *ranges);
  for (int i = 0; i < m->loop_count; i++)
    m->loops[i] = loops[i];
  qsort(m->ranges, (size_t)m->range_count, sizeof *ranges, by_start);
  memset(m->entries, 0, sizeof m->entries);
}

bool st_code_map_has_loop(const struct st_code_map* m) {
  return m->loop_count > 0;
}

uint64_t st_code_map_unknown(const struct st_code_map* m) {
  return m->unknown;
}

static const struct st_code_range* range_of(const struct st_code_map* m,
                                            uint64_t pc) {
  int low = 0, high = m->range_count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (m->ranges[middle].end <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low < m->range_count && m->ranges[low].start <= pc ? &m->ranges[low]
                                                            : NULL;
}

/* Returns the rules at an address, which is in a known range; NULL if there are
 * none. */
static const struct st_unwind_rules* rules_at(struct st_code_map* m,
                                              const struct st_memory* tables,
                                              uint64_t header, uint64_t pc) {
  struct entry* e = &m->entries[(pc * UINT64_C(0x9E3779B97F4A7C15)) >> 53];
  if (e->pc != pc) {
    e->pc = pc;
    e->found = st_eh_frame_find(tables, header, pc, &e->rules);
  }
  return e->found ? &e->rules : NULL;
}

static bool is_loop(const struct st_code_map* m, uint64_t function) {
  for (int i = 0; i < m->loop_count; i++)
    if (m->loops[i] == function)
      return true;
  return false;
}

/* Finds the caller of code without rules.  Only code that is interrupted may be a
 * stub: one calls nothing. */
static bool leave_stub(const struct st_code_map* m,
                       const struct st_memory* stack, struct st_registers* r) {
  struct st_registers caller = *r;
  if (r->is_call || !st_eh_frame_leave_stub(stack, &caller) ||
      !range_of(m, caller.pc - 1))
    return false;
  *r = caller;
  return true;
}

int st_code_map_walk(struct st_code_map* m, const struct st_memory* tables,
                     const struct st_memory* stack,
                     struct st_registers* registers, struct st_c_call* calls,
                     int room, bool* is_complete) {
  int depth = 0;
  bool goes_on = true;
  while (goes_on && registers->pc && depth < room) {
    uint64_t pc = registers->pc - registers->is_call;
    const struct st_code_range* range = range_of(m, pc);
    if (!range) {
      m->unknown++;
      break;
    }
    const struct st_unwind_rules* rules =
        rules_at(m, tables, range->header, pc);
    uint64_t function = rules ? rules->function : pc;
    calls[depth++] = (struct st_c_call){function, is_loop(m, function)};
    goes_on = rules ? st_eh_frame_apply(stack, rules, registers)
                    : leave_stub(m, stack, registers);
  }
  *is_complete = !registers->pc;
  return depth;
}
