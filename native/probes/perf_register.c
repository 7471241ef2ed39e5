#include "probes/perf_register.h"

#include <string.h>

#if defined(__x86_64__)

/* Returns the number in unwind tables of a register of a sample. */
static int number_of(int i) {
  static const uint8_t kNumbers[ST_PERF_REGISTERS] = {
      0, 3,  2,  1,  4,  5,  6, ST_UNWIND_SP, ST_UNWIND_PC, 8,
      9, 10, 11, 12, 13, 14, 15};
  return kNumbers[i];
}

#else

static int number_of(int i) {
  return i; /* aarch64: sp and pc have the same ones, too. */
}

#endif

void st_perf_registers(const uint8_t* words, struct st_registers* registers) {
  *registers = (struct st_registers){0};
  for (int i = 0; i < ST_PERF_REGISTERS; i++) {
    uint64_t value;
    int number = number_of(i);
    memcpy(&value, words + (size_t)i * sizeof value, sizeof value);
    if (number == ST_UNWIND_PC) {
      registers->pc = value;
    } else {
      registers->values[number] = value;
      registers->known |= UINT64_C(1) << number;
    }
  }
}
