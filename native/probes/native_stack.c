#include "probes/native_stack.h"

/* Returns the range with an address, or NULL. */
static const struct st_code_range* range_of(const struct st_code_range* ranges,
                                            int count, uint64_t address) {
  for (int i = 0; i < count; i++)
    if (address >= ranges[i].start && address < ranges[i].end)
      return &ranges[i];
  return NULL;
}

int st_native_stack(const struct st_memory* memory,
                    const struct st_code_range* ranges, int range_count,
                    uint64_t pc, uint64_t sp, uint64_t* pcs) {
  struct st_registers r = {.pc = pc, .known = UINT64_C(1) << ST_UNWIND_SP};
  r.values[ST_UNWIND_SP] = sp;
  int depth = 0;
  while (r.pc && depth < ST_NATIVE_MAX_DEPTH) {
    uint64_t at = r.pc - r.is_call;
    const struct st_code_range* range = range_of(ranges, range_count, at);
    if (!range)
      break;
    pcs[depth++] = at;
    if (!st_eh_frame_step(memory, range->header, &r))
      break;
  }
  return depth;
}
