/* Code records: the state of each code object in auto detail (auto_detail.h).
 *
 *   ON     events record its calls, and count them
 *   OFF    switched off, because its calls were short: the interpreter does not
 *          report them; looks (look.h) find calls that have become long
 *   NEVER  not recorded at all: Stretto's own code, or excluded code
 *
 * A record is found by the code's address, without a lock, because the look
 * thread does not hold the GIL.  So records are never removed during a
 * recording, and each keeps its code alive.  At most ST_MAX_CODE_RECORDS code
 * objects have a record; calls of all further ones are not recorded.
 *
 * Threads: written with the GIL, except the members that the look thread
 * writes.
 */
#pragma once

#include <stdatomic.h>

#include "hooks/tracer.h"

enum { ST_MAX_CODE_RECORDS = 1 << 16 };

enum st_code_state { ST_CODE_ON, ST_CODE_OFF, ST_CODE_NEVER };

/* The atomics are for the look thread, which reads and writes without the GIL.
 * Each is complete in itself: relaxed order suffices, also where the code uses
 * the default.  Who reads an old `state` or `armed` acts one look later. */
struct st_code_record {
  PyObject* code; /* A strong reference. */
  _Atomic uint8_t state;
  _Atomic bool armed; /* OFF, but the interpreter reports the next call. */
  bool was_off;       /* It was OFF, so its number of calls is not known. */
  uint32_t short_row; /* Number of short calls since the last long one. */
  uint32_t open;  /* Number of its frames in the shown calls of all threads. */
  uint64_t calls; /* Number of reported calls that have returned. */
  uint64_t total_ns; /* Total duration of the reported calls. */
  /* Estimated time as innermost call; written by the look thread. */
  _Atomic uint64_t own_ns;
  /* Estimated time on any stack; written by the look thread. */
  _Atomic uint64_t time_ns;
  /* Number of the last look that counted it; look thread only. */
  uint64_t look;
};

/* Returns the record of the code object at this address, or NULL if there is
 * none. May be called without the GIL. */
struct st_code_record* st_code_record_find(uint64_t code);
/* Returns the record of a code object, a new one if needed.  Calls the code
 * filter for new code, which may run Python code.  NULL if there are too many
 * records. */
struct st_code_record* st_code_record_get(PyObject* code);

uint32_t st_code_records_count(void);
/* Returns record number `index`, in the order in which they were made, or NULL.
 * May be called without the GIL. */
struct st_code_record* st_code_record_at(uint32_t index);

/* Removes all records, after the looks have stopped. */
void st_code_records_clear(void);
