/* Code map: the code of another process, and the C calls of its threads.
 *
 *   ranges   where code is, and the tables of its file (eh_frame.h)
 *   loops    the first addresses of the interpreter's loop and of its parts
 *   rules    how to find the caller, by address of code: the latest ones
 *
 * A caller is found by rules that are made from the tables of its file.  To
 * make them takes some thirty system calls.  So they are kept: code addresses
 * repeat, and a stack whose rules are known is walked in its copy alone.
 *
 *   registers, copy of the stack ─> function, its caller, ...
 *
 * The innermost code may have no rules.  Then it is taken for a stub, which has
 * saved nothing, if its caller would be in a known range.
 *
 * A function is named by its first address, so the place within it makes no
 * other stack.
 *
 * Limits: ST_MAP_MAX_RANGES, ST_MAP_MAX_LOOPS.
 */
#pragma once

#include "probes/native_stack.h"

enum { ST_MAP_MAX_RANGES = 4096, ST_MAP_MAX_LOOPS = 64 };

struct st_c_call {
  uint64_t function; /* Its first address, or an address in it. */
  bool is_loop;
};

struct st_code_map;

/* Returns NULL when out of memory. */
struct st_code_map* st_code_map_create(void);
void st_code_map_destroy(struct st_code_map* m);

/* Replaces ranges and loops, and removes all rules.  More than the limits are
 * left out. */
void st_code_map_set(struct st_code_map* m, const struct st_code_range* ranges,
                     int range_count, const uint64_t* loops, int loop_count);
/* Whether the interpreter's loop is known. */
bool st_code_map_has_loop(const struct st_code_map* m);
/* How often an address was in no range: the ranges should be read again. */
uint64_t st_code_map_unknown(const struct st_code_map* m);

/* Finds the calls of a thread, the innermost first, in calls[0 .. `room`).
 * `tables` reads the process, `stack` the copy of its stack.  `registers` are
 * changed.  Returns their number; *is_complete says whether the outermost one
 * was found. */
int st_code_map_walk(struct st_code_map* m, const struct st_memory* tables,
                     const struct st_memory* stack,
                     struct st_registers* registers, struct st_c_call* calls,
                     int room, bool* is_complete);
