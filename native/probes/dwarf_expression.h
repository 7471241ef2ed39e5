/* DWARF expressions: small programs, in unwind tables, that compute an address.
 *
 *   77 08           breg7 +8      rsp + 8              stub of a library's call
 *   80 00           breg16 +0     rip, rsp + 8
 *   3F 1A 3B 2A     lit15, and, lit11, ge   has the stub pushed its number?
 *   33 24 22        lit3, shl, plus         rsp + 8, or rsp + 16
 *
 * Where no sum of a register and a constant gives the caller's place, the tables
 * have an expression: in the stubs that a linker makes for calls to libraries, in
 * functions that align their stack, in hand-written assembly, in the code that a
 * signal handler returns to.
 *
 * An expression is taken from a table once, as a copy that rules can hold, and
 * evaluated for each call.  It runs on a stack of numbers, may read registers and
 * memory, and its result is what is on top at its end.
 *
 * Nothing in it is trusted.  It is short, and jumps go forward only, so it ends;
 * the stack has a limit; a register that is not known, memory that can't be read,
 * and an operation that unwind tables don't need (addresses of code, calls, other
 * address spaces, types) make it fail.
 *
 * Limits: ST_EXPRESSION_MAX_BYTES, which all expressions of glibc, OpenSSL and gcc
 * are below; ST_EXPRESSION_MAX_DEPTH.
 *
 * Source: DWARF 5, section 2.5.1. */
#pragma once

#include "probes/dwarf_cursor.h"
#include "probes/stack_reader.h"
#include "probes/unwind_registers.h"

enum { ST_EXPRESSION_MAX_BYTES = 15, ST_EXPRESSION_MAX_DEPTH = 8 };

/* A copy of an expression.  0 bytes: there is none, or it was too long. */
struct st_expression {
  uint8_t size;
  uint8_t bytes[ST_EXPRESSION_MAX_BYTES];
};

/* Takes an expression, which its size precedes. */
struct st_expression st_expression_take(struct st_dwarf_cursor* c);

/* Computes an expression.  `first` is a number that is on the stack before it
 * begins; NULL: none is.  Returns false if it fails. */
bool st_expression_evaluate(const struct st_expression* expression,
                            const struct st_memory* memory,
                            const struct st_registers* registers,
                            const uint64_t* first, uint64_t* result);
