/* Unwind registers: those of one call, under DWARF's numbers.  A register that no
 * function below has saved is not known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
#if defined(__x86_64__)
  ST_UNWIND_REGISTERS = 17,
  ST_UNWIND_SP = 7,
  ST_UNWIND_PC = 16, /* The number under which expressions read pc. */
#elif defined(__aarch64__)
  ST_UNWIND_REGISTERS = 34,
  ST_UNWIND_SP = 31,
  ST_UNWIND_PC = 32,
#else
  ST_UNWIND_REGISTERS = 34,
  ST_UNWIND_SP = 7,
  ST_UNWIND_PC = 33,
#endif
};

/* Bit n of `known` says whether value n is known. */
struct st_registers {
  uint64_t pc, known;
  /* Whether pc is a return address: the code before it is meant. */
  bool is_call;
  uint64_t values[ST_UNWIND_REGISTERS];
};

/* Returns whether a register is known, and its value. */
static inline bool st_register_read(const struct st_registers* r,
                                    uint64_t number, uint64_t* value) {
  if (number >= ST_UNWIND_REGISTERS)
    return false;
  bool is_pc = number == ST_UNWIND_PC;
  *value = is_pc ? r->pc : r->values[number];
  return is_pc || r->known >> number & 1;
}
