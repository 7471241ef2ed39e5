/* Perf unwinder: the calls of a program at a sample, from its registers and a copy
 * of the top of its stack.
 *
 *   registers, stack ─┐
 *   code: file, place ┴─> innermost call, its caller, ...
 *
 * The caller of each function is found by the unwind tables of its file
 * (eh_frame.h), so no frame pointers are needed.  The tables are read from files,
 * not from processes: a process may have ended before its samples are read.
 *
 * The owner knows which file is mapped where.  When an address is in no known code,
 * the unwinder stops and names the address; the owner adds the code and unwinds
 * again, or takes the calls that were found.
 *
 * The rules of an address are those of its file, in whichever process: the latest
 * ones are kept.
 *
 * The innermost code may have no rules.  Then it is taken for a stub, which has
 * saved nothing, if its caller would be in known code.
 *
 * Limits: ST_PERF_MAX_CODE places of code; with one more, all are forgotten.  A
 * stack whose bytes in the sample end early has its innermost calls.
 */
#pragma once

#include "probes/elf_file.h"
#include "probes/perf_record.h"

enum { ST_PERF_MAX_CODE = 1 << 14 };

/* Code at [start, end) of a space.  An address less `bias` is the file's own. */
struct st_perf_code {
  uint64_t space, start, end, bias;
  const struct st_elf_file* file; /* NULL: without tables. */
};

/* Why a stack is not complete, as PerfSample.unwind_error has it. */
enum st_perf_unwind_error {
  ST_PERF_UNWIND_COMPLETE = 0,
  ST_PERF_UNWIND_MEMORY = 2, /* The stack's bytes end, or are wrong. */
  ST_PERF_UNWIND_TABLES = 3, /* There are no rules at an address. */
  ST_PERF_UNWIND_CODE = 5,   /* An address is in no known code. */
  ST_PERF_UNWIND_DEPTH = 6,
};

struct st_perf_unwound {
  uint32_t depth;
  enum st_perf_unwind_error error;
  uint64_t missing; /* ST_PERF_UNWIND_CODE: the address. */
};

struct st_perf_unwinder;

/* Returns NULL when out of memory. */
struct st_perf_unwinder* st_perf_unwinder_create(void);
void st_perf_unwinder_destroy(struct st_perf_unwinder* u);

/* Adds code, instead of what overlaps it.  Its file must exist until
 * st_perf_unwinder_clear().  Returns false when out of memory. */
bool st_perf_unwinder_add(struct st_perf_unwinder* u,
                          const struct st_perf_code* code);
/* Forgets all code and all rules. */
void st_perf_unwinder_clear(struct st_perf_unwinder* u);

/* Finds the calls at a sample with registers, the innermost first, in pcs[0 ..
 * `room`): addresses in the code of each call, that of the call instruction for all
 * that are not interrupted. */
struct st_perf_unwound st_perf_unwind(struct st_perf_unwinder* u,
                                      uint64_t space,
                                      const struct st_perf_record* sample,
                                      uint64_t* pcs, uint32_t room);
