/* Exception frames: finds the caller of a C function, by the tables that
 * compilers write for exceptions.
 *
 *   .eh_frame_hdr   sorted table: first address of code -> its FDE
 *   FDE             range of code, its CIE, instructions
 *   CIE             encodings, instructions that all its FDEs begin with
 *
 * Executed up to an address of code, the instructions say where the caller's
 * registers are, relative to the canonical frame address (CFA):
 *
 *   CFA = stack pointer + 48;  return address at CFA - 8;  rbp at CFA - 16 ...
 *
 * So no frame pointers are needed.  Both tables are in the memory of the process
 * that executes the code, from which they are read.  Nothing in them is
 * trusted: each entry is copied, its size is bounded, and an expression is limited
 * (dwarf_expression.h).
 *
 * The code that a signal handler returns to says that its caller was interrupted:
 * that one's pc is no return address.
 *
 * x86-64 and aarch64.  Registers have DWARF's numbers.  Source: DWARF 5, section
 * 6.4; Linux Standard Base 5, Core, chapter 10.6.
 */
#pragma once

#include "probes/dwarf_expression.h"

/* The largest FDE or CIE, in bytes. */
enum { ST_UNWIND_MAX_ENTRY = 8192 };

/* How a register of the caller is found. */
struct st_unwind_rule {
  union {
    int64_t value;
    struct st_expression expression;
  };
  uint8_t kind;
};

/* How the caller of a function is found, at one address of its code. */
struct st_unwind_rules {
  uint64_t function; /* The first address of the FDE's code. */
  uint64_t return_register;
  /* The CFA: an expression, or else a register and an offset. */
  struct st_expression cfa_expression;
  uint64_t cfa_register;
  int64_t cfa_offset;
  bool has_cfa;
  bool is_signal_frame; /* The caller was interrupted, it has called nothing. */
  struct st_unwind_rule registers[ST_UNWIND_REGISTERS];
};

/* Finds the rules at an address of code.  Returns false if there are none. */
bool st_eh_frame_find(const struct st_memory* memory, uint64_t header,
                      uint64_t pc, struct st_unwind_rules* rules);

/* Replaces the registers of a function by those of its caller.  `memory` has
 * the stack.  Returns false if the caller can't be found. */
bool st_eh_frame_apply(const struct st_memory* memory,
                       const struct st_unwind_rules* rules,
                       struct st_registers* registers);

/* Does the same for code without rules, which is taken for a stub: it has saved
 * nothing.  Some linkers write no tables for the stubs of library calls, and the
 * code of a system call may have none.  The result is a guess, to be checked. */
bool st_eh_frame_leave_stub(const struct st_memory* memory,
                            struct st_registers* registers);

/* Finds and applies the rules.
 *
 * `header` is the address of the .eh_frame_hdr of the function's file.  Returns
 * false if the caller can't be found.  pc becomes 0 if there is none. */
bool st_eh_frame_step(const struct st_memory* memory, uint64_t header,
                      struct st_registers* registers);
