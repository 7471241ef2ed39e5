/* Heap stacks: numbers the Python stacks on which memory is allocated.
 *
 *   code object --> life --(life, instruction)--> frame: (function, line)
 *        |                                          |
 *        function: (qualified name, file,           stack: frames
 *                   first line)
 *
 * Code objects are not kept alive: a profiler of memory must not hold memory
 * that the program has freed.  So each gets a number for its life, which ends
 * when its memory is freed; the profiler sees that, as it sees all frees.  Only
 * the name and the file are kept, which are mostly shared.
 *
 * Nothing here allocates memory of Python, or runs Python code.
 *
 * Limits: those of the stack table, and ST_HEAP_MAX_FUNCTIONS.  A stack that
 * finds no room is ST_STACK_REST.  Of a stack that is too deep the outermost
 * frames are left out.
 *
 * The caller holds the heap profile's mutex.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/address_filter.h"
#include "probes/address_table.h"
#include "probes/stack_table.h"

enum {
  ST_HEAP_MAX_FUNCTIONS = (1 << 18) - 1,
  ST_HEAP_MAX_DEPTH = 512,
};

/* Stacks of one frame, which have these numbers in each table. */
enum st_heap_special_stack {
  ST_STACK_NO_PYTHON = 1, /* No Python call, or a thread without the GIL. */
  ST_STACK_OTHER_INTERPRETER,
  ST_STACK_REST, /* Stacks that found no room. */
  ST_STACK_SPECIALS = ST_STACK_REST,
};

struct st_heap_function {
  PyObject *name, *file; /* Strong references. */
  int first_line;
};

struct st_heap_stacks {
  struct st_stack_table* table;
  struct st_address_table codes;      /* Code: its life and its function. */
  struct st_address_table by_hash;    /* Functions, for their numbers. */
  struct st_heap_function* functions; /* By number - 1. */
  uint32_t function_count, function_capacity;
  uint64_t lives;
  uint64_t rest; /* The number of samples that got ST_STACK_REST. */
};

/* Starts with the special stacks.  Returns false with an exception set. */
bool st_heap_stacks_init(struct st_heap_stacks* s);
/* Forgets all stacks.  The functions stay: their references can't be dropped
 * under the mutex.  The caller passes them to st_heap_functions_free(). */
void st_heap_stacks_clear(struct st_heap_stacks* s);
void st_heap_functions_free(struct st_heap_function* functions, uint32_t count);

/* Returns the number of the calling thread's stack.  The thread may be without
 * the GIL.  New code objects are added to the filter. */
uint32_t st_heap_stack_number(struct st_heap_stacks* s,
                              struct st_address_filter* filter);
/* Ends the life of the code object at this address, if it is one. */
void st_heap_stacks_free_code(struct st_heap_stacks* s,
                              struct st_address_filter* filter,
                              uint64_t address);
