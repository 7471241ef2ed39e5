/* Code records: the state of each code object in auto detail (auto_detail.h).
 *
 *   ON     events record its calls, and count them
 *   OFF    switched off, because its calls were short: the interpreter does not
 *          report them; stack_sampler.h finds calls that have become long
 *   NEVER  not recorded at all: Stretto's own code, or excluded code
 *
 * A record is found by the code's address, without a lock, because the sampling
 * thread does not hold the GIL.  So records are never removed during a
 * recording, and each keeps its code alive.  At most ST_MAX_CODE_RECORDS code
 * objects have a record; calls of further code objects are not recorded, and the
 * summary says so.
 *
 * Threads: written with the GIL, except the members that the sampling thread
 * writes.
 */
#pragma once

#include <stdatomic.h>

#include "hooks/shared_totals.h"
#include "hooks/tracer.h"

enum { ST_MAX_CODE_RECORDS = 1 << 16 };

/* A time later than all others. */
#define ST_BEGINS_UNKNOWN UINT64_MAX

enum st_code_state { ST_CODE_ON, ST_CODE_OFF, ST_CODE_NEVER };

/* The members are atomic, because the sampling thread reads and writes them
 * without the GIL.  Each value is used independently of the others, so relaxed
 * order suffices, also where the code uses the default order.  If a thread
 * reads an old `state` or `armed`, it acts one sampling period later. */
struct st_code_record {
  PyObject* code; /* A strong reference to the code object. */
  _Atomic uint8_t state;
  /* The code is OFF, but armed: the interpreter reports its next call. */
  _Atomic bool armed;
  /* Since when the interpreter has reported each begin of a call of this code;
   * ST_BEGINS_UNKNOWN while it may leave some out. */
  _Atomic uint64_t reported_since;
  /* The code was OFF at some time, so some of its calls were not counted. */
  bool was_off;
  /* When another call last switched it on again; 0 before that. */
  uint64_t off_until;
  /* This code contains the name of a function that may block (call_sites.h),
   * but the interpreter does not report the calls that it makes yet. */
  bool may_block;
  /* The code is a starter (code_filter.h); its state is NEVER. */
  bool starter;
  /* The interpreter reports the calls that this code makes (c_calls.h). */
  _Atomic bool reports_calls;
  uint32_t short_row; /* The number of short calls since the last long call. */
  uint64_t row_ns;    /* The total duration of the calls in short_row. */
  /* The number of open calls of this code, on all threads
   * (shown_calls.h). */
  uint32_t open;
  /* The number of reported calls that have returned.  A generator or coroutine
   * is one call, which counts when its first step ends. */
  _Atomic uint64_t calls;
  /* The total duration of the reported calls of this code. */
  uint64_t total_ns;
  /* The name of its slices and its file, for the sampling thread. */
  const char *name, *file;
  /* The number of its totals (shared_totals.h); 0 if it has none. */
  _Atomic uint32_t totals;
  /* The number of the last sampling round that found this code on a stack.
   * Only the sampling thread uses this number. */
  uint64_t round;
  /* Whether a thread was found blocked in this code.  Only the sampling thread
   * uses this. */
  bool blocks;
};

/* Returns the record of the code object at this address.  Returns NULL if it
 * has no record.  May be called without the GIL. */
struct st_code_record* st_code_record_find(uint64_t code);
/* Returns the record of a code object.  A new code object gets a record after a
 * call of the code filter, which may run Python code.  Returns NULL if there
 * are too many records. */
struct st_code_record* st_code_record_get(PyObject* code);

/* Makes the interpreter report the next call of code that is OFF; `record` may
 * be NULL.  May be called without the GIL. */
void st_code_record_arm(struct st_code_record* record);

/* The interpreter will not report further begins of calls, at one place of the
 * code or more.  The caller holds the GIL. */
void st_code_record_stops_reports(struct st_code_record* record);

uint32_t st_code_records_count(void);
/* Returns the record with this index, or NULL if there is none.  Indices are
 * given in the order in which records are made.  May be called without the
 * GIL. */
struct st_code_record* st_code_record_at(uint32_t index);

/* Clears all counts, and switches all code on, except code in the state
 * ST_CODE_NEVER.  Called in the child of a fork, while no sampling thread runs.
 */
void st_code_records_restart(void);
/* Copies the calls of a function into its totals, if it has some. */
void st_code_record_publish(const struct st_code_record* record);
/* Removes all code records.  Called after the sampling thread was stopped. */
void st_code_records_clear(void);
