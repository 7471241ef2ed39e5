/* Code records: what auto detail knows about each code object.
 *
 *   ON     its calls are recorded by events, and counted
 *   OFF    its calls were short: the interpreter reports none of them, the looks
 *          find those that have become long
 *   NEVER  it isn't recorded at all: Stretto's own, or excluded
 *
 * A record is found by the code's address, without a lock: the thread that looks
 * at the stacks has no GIL.  So records are never removed while a recording
 * runs, and each keeps its code alive.  At most ST_MAX_CODE_RECORDS code objects
 * have one; the calls of any others are not recorded.
 *
 * Threads: written with the GIL, except the fields of the look, whose thread
 * writes them.
 */
#pragma once

#include <stdatomic.h>

#include "hooks/tracer.h"

enum { ST_MAX_CODE_RECORDS = 1 << 16 };

enum st_code_state { ST_CODE_ON, ST_CODE_OFF, ST_CODE_NEVER };

struct st_code_record {
  PyObject* code; /* strong */
  _Atomic uint8_t state;
  _Atomic bool armed; /* OFF, but the next call is reported */
  bool was_off;       /* the number of its calls is not known */
  uint32_t short_row; /* short calls since the last long one */
  uint32_t open;      /* frames of it among the shown calls of all threads */
  uint64_t calls;     /* that were reported and have returned */
  uint64_t total_ns;  /* of these */
  _Atomic uint64_t own_ns;  /* the look's: estimated time as innermost call */
  _Atomic uint64_t time_ns; /* the look's: estimated time on a stack */
  uint64_t look;            /* the look's: the last one that counted it */
};

/* Returns NULL if there is none.  May be called without the GIL. */
struct st_code_record* st_code_record_find(uint64_t code);
/* Finds or makes the record; the filter decides about new code, which may run
 * Python.  NULL: there are too many. */
struct st_code_record* st_code_record_get(PyObject* code);

uint32_t st_code_records_count(void);
/* The record that was made as number `index`, or NULL; without the GIL. */
struct st_code_record* st_code_record_at(uint32_t index);

/* Removes all records.  The looks must have stopped. */
void st_code_records_clear(void);
