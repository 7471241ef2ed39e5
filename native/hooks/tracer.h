/* The tracer of function calls: its options, its state and its counters.
 *
 *   monitoring.c (3.12 and later), profile.c (3.11)   the interpreter's events
 *        |   enter, leave of a code object or C function
 *   call_stack.h          open calls of this thread; depth, duration
 *        |   begin, end
 *   bind/track_event/track_event_api.h   stretto._native writes the slices
 *
 *   backend.h       starts and stops monitoring.c or profile.c
 *   code_filter.h   decides whether a code object is traced
 *   call_values.h   arguments and results of calls
 *   c_functions.h   names of C functions
 *   around.h        runs an observer before and after a function, without a
 *                   Python frame of its own
 *   collections.h   slices for runs of the garbage collector
 *
 * Life cycle: one tracer per process, in the main interpreter; module.c starts
 * and stops it.
 *
 * Threads: the GIL guards the tracer.  CPython calls no hook while another hook
 * is running on the same thread, so the functions are never re-entered.
 *
 * Private and version-specific API of CPython is used in this folder only.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bind/track_event/track_event_api.h"

#define ST_LIKELY(x) __builtin_expect(!!(x), 1)
#define ST_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The threshold of auto detail at its start. */
enum { ST_DEFAULT_THRESHOLD_NS = 50000 };

/* How many calls have no slice, and how many threads have no hook: a count for
 * each reason. */
struct st_hook_counts {
  _Atomic uint64_t too_deep; /* The number of calls deeper than max_depth. */
  /* How often a code object could not get a record (code_records.h). */
  _Atomic uint64_t without_record;
  _Atomic uint64_t
      too_short; /* The number of calls shorter than min_duration_ns. */
  /* The number of open calls that were closed by the return of a caller. */
  _Atomic uint64_t unfinished;
  /* The number of threads on which the program has set its own profiler during
   * tracing. */
  _Atomic uint64_t threads_replaced;
  /* The number of threads on which the program had its own profiler before
   * tracing. */
  _Atomic uint64_t threads_occupied;
  /* The number of suspended calls that could not be kept, or not begun again. */
  _Atomic uint64_t not_continued;
};

struct st_hooks {
  const struct st_track_event_api* api;
  PyObject* category;
  /* The code filter: a Python callable (code, module name).  It returns a bool,
   * or the name of the code's slices, which is in a tuple if the code is
   * foreign.  NULL if all code is traced. */
  PyObject* accepts;
  /* Python functions that describe the values of a call (call_values.h), or
   * NULL. */
  PyObject *arguments_of, *result_of;
  uint64_t min_duration_ns;
  uint32_t max_depth;
  bool c_functions;
  /* Whether some code is foreign (code_filter.h). */
  bool some_foreign;
  bool running;
  /* Whether this process is the child of a fork and has had no call since. */
  bool in_new_child;
  bool auto_detail;
  /* Whether the CPU time of the thread is read at each begin and end of a
   * call. */
  bool cpu;
  /* Whether calls take a slower path: short calls are left out, CPU times are
   * read, or `greenlets`. */
  bool slow_calls;
  /* Whether the program has imported greenlet, so a thread may have several
   * stacks. */
  bool greenlets;
  /* Whether auto detail may switch functions off: only with the sampling
   * thread, which finds the long calls of functions that are switched off
   * (stack_sampler.h). */
  bool may_switch_off;
  /* Whether any function is switched off by auto detail. */
  bool some_off;
  /* The threshold: calls shorter than this are only counted.  The sampling
   * thread raises it.  Accesses are relaxed, because nothing else depends on
   * it. */
  _Atomic uint64_t threshold_ns;
  /* The generation of the tracer: the number of its last start. */
  uint32_t generation;
  struct st_hook_counts counts;
};

extern struct st_hooks st_hooks;

/* Drops an exception that our own Python code raised.  An exception that a
 * signal handler of the program raised meanwhile is raised again later. */
void st_drop_error(void);
