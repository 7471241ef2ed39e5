/* Python target: a process with a CPython interpreter, and the addresses and
 * offsets of the interpreter's data. */
#pragma once

#include <stdint.h>

#include "probes/stack_reader.h"

enum { ST_TARGET_MAX_HEADS = 16 };

/* The layout of a CPython version: offsets in bytes. */
struct st_python_layout {
  struct st_stack_layout stack;
  /* In a code object. */
  uint16_t code_first_line, code_line_table, code_start;
  /* In a bytes object. */
  uint16_t bytes_size, bytes_data;
};

struct st_python_target {
  int pid;
  struct st_python_layout layout;
  /* The addresses of the pointers to the first thread state, one for each
   * interpreter. */
  uint64_t heads[ST_TARGET_MAX_HEADS];
  int head_count;
  /* The addresses of two variables: the pointer to the last thread state that
   * held the GIL, and the number that is 1 while the GIL is held.  0 if not
   * known. */
  uint64_t gil_holder, gil_locked;
};
