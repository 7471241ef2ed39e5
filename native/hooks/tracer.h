/* The tracer of function calls: its options, its state and its counters.
 *
 *   monitoring.c (3.12 and later) or profile.c (3.11)   the interpreter's events
 *        |   enter, leave of a code object or C function
 *   call_stack.h          open calls of this thread; depth, duration
 *        |   begin, end
 *   bind/track_event/track_event_api.h   stretto._native writes the slices
 *
 *   backend.h       starts and stops monitoring.c or profile.c
 *   code_filter.h   decides whether a code object is traced
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

enum { ST_DEFAULT_THRESHOLD_NS = 50000 }; /* For auto detail. */

/* Counts of calls without a slice and of threads without the hook, by
 * reason. */
struct st_hook_counts {
  uint64_t too_deep;   /* Calls deeper than max_depth. */
  uint64_t too_short;  /* Calls shorter than min_duration_ns. */
  uint64_t unfinished; /* Calls that the return of a caller closed. */
  /* Threads on which the program set its own profiler during tracing. */
  uint64_t threads_replaced;
  /* Threads on which the program had its own profiler before tracing. */
  uint64_t threads_occupied;
};

struct st_hooks {
  const struct st_track_event_api* api;
  PyObject* category;
  /* A callable (code, module name) -> bool; NULL if all code is traced. */
  PyObject* accepts;
  uint64_t min_duration_ns;
  uint32_t max_depth;
  bool c_functions;
  bool running;
  bool auto_detail;
  bool may_switch_off; /* Looks run, which find long calls (look.h). */
  bool some_off;       /* Whether any function is switched off. */
  /* The time between two looks.  The look thread writes it, other threads read
   * it. Relaxed access suffices, because nothing else depends on it. */
  _Atomic uint64_t look_period_ns;
  /* Shorter calls are only counted.  The look thread raises it; relaxed like the
   * period. */
  _Atomic uint64_t threshold_ns;
  uint32_t generation; /* The number of the last start. */
  struct st_hook_counts counts;
};

extern struct st_hooks st_hooks;

/* Drops an exception that our own Python code raised.  An exception that a
 * signal handler of the program raised meanwhile is raised again later. */
void st_drop_error(void);
