#include "probes/heap_budget.h"

bool st_heap_budget_is_timed(struct st_heap_budget* b) {
  return b->samples++ % ST_BUDGET_STEP == 0 && b->limit;
}

bool st_heap_budget_add(struct st_heap_budget* b, uint64_t duration) {
  b->spent += duration < ST_BUDGET_MAX_NS ? duration : ST_BUDGET_MAX_NS;
  return b->samples >= ST_BUDGET_WINDOW;
}

bool st_heap_budget_is_over(struct st_heap_budget* b, uint64_t cpu_time) {
  uint64_t passed = cpu_time - b->began;
  b->samples = 0;
  if (passed < ST_BUDGET_CPU_NS)
    return false;
  bool is_first = !b->began;
  bool over = b->spent * ST_BUDGET_STEP * 1000 > passed * b->limit;
  b->began = cpu_time;
  b->spent = 0;
  return over && !is_first;
}
