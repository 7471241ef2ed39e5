/* Stack table: numbers the different stacks of a sampler, and their frames.
 *
 * A sampler reads the same stacks many times.  The trace has each stack and
 * each frame once, and refers to it by its number (interning id):
 *
 *   (code, instruction) --> frame: (function, line) --> stack: frames,
 *                                                       outermost first
 *
 * Numbers are given in order, from 1 on.  So the writer of the trace writes
 * only the frames and stacks whose numbers are greater than the last written
 * ones.
 *
 * Limits: ST_MAX_FRAMES and ST_MAX_STACKS.  When one is reached, or memory is
 * exhausted, st_stack_table_add() and st_stack_table_stack() return 0.  A
 * sampler then clears the table, and numbers start at 1 again.  Instructions are
 * a cache, which starts anew when it has ST_MAX_FRAMES of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_MAX_FRAMES = 1 << 18, ST_MAX_STACKS = 1 << 18 };

/* The line of a C function: it has none. */
enum { ST_NATIVE_LINE = -1 };

struct st_table_frame {
  uint64_t function;
  int32_t line;
};

struct st_stack_table;

struct st_stack_table* st_stack_table_create(void);
void st_stack_table_destroy(struct st_stack_table* t);
void st_stack_table_clear(struct st_stack_table* t);

/* Returns the number of the frame for an instruction of a code object; 0 if the
 * table has none. */
uint32_t st_stack_table_known(const struct st_stack_table* t, uint64_t code,
                              uint64_t instruction);
/* Adds an instruction that belongs to a line of a function, which may have
 * several code objects.  Returns the frame's number, or 0. */
uint32_t st_stack_table_add(struct st_stack_table* t, uint64_t code,
                            uint64_t instruction, uint64_t function,
                            int32_t line);
/* Returns the number of a stack, which is added if it is new.  Returns 0 if it
 * can't be added. */
uint32_t st_stack_table_stack(struct st_stack_table* t, const uint32_t* frames,
                              uint32_t depth);

uint32_t st_stack_table_frame_count(const struct st_stack_table* t);
uint32_t st_stack_table_stack_count(const struct st_stack_table* t);
/* Returns a frame; `number` is from 1 to the count. */
struct st_table_frame st_stack_table_frame(const struct st_stack_table* t,
                                           uint32_t number);
/* Counts a sample of a stack, which stands for `weight` samples. */
void st_stack_table_hit(struct st_stack_table* t, uint32_t number,
                        uint32_t weight);
/* Returns the sum of the weights of a stack. */
uint32_t st_stack_table_hits(const struct st_stack_table* t, uint32_t number);
/* Returns the frame numbers of a stack, and stores their count. */
const uint32_t* st_stack_table_frames(const struct st_stack_table* t,
                                      uint32_t number, uint32_t* depth);
