/* Function tracing: every call of the program becomes a slice.
 *
 *   monitoring.c (3.12 and later) or profile.c (3.11)   the interpreter's events
 *        |   enter, leave: a code object or a C function
 *   call_stack.c          what is open on this thread; depth, duration
 *        |   begin, end
 *   bind/track_event/track_event_api.h  stretto._native writes the slices
 *
 *   code_filter.c   whether a code object is traced at all
 *   c_functions.c   names of C functions
 *   around.c        runs an observer before and after a function, without a
 *                   Python frame of its own
 *   collections.c   runs of the garbage collector
 *
 * There is one tracer per process, in the main interpreter; all of it is
 * guarded by the GIL.  CPython calls no hook while one is running on the same
 * thread, so nothing here is entered twice by one thread.
 *
 * Private and version-specific API of CPython is used here and nowhere else.
 */
#ifndef STRETTO_HOOKS_HOOKS_H_
#define STRETTO_HOOKS_HOOKS_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "bind/track_event/track_event_api.h"

#define ST_LIKELY(x) __builtin_expect(!!(x), 1)
#define ST_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Calls that left no slice, and why. */
struct st_hook_counts {
  uint64_t too_deep;         /* deeper than max_depth */
  uint64_t too_short;        /* shorter than min_duration_ns */
  uint64_t unfinished;       /* closed by the return of a caller */
  uint64_t threads_replaced; /* the program set a profiler of its own ... */
  uint64_t threads_occupied; /* ... or has had one since before we came */
};

struct st_hooks {
  const struct st_track_event_api* api;
  PyObject* category;
  PyObject* accepts; /* callable(code, module name), or NULL: everything */
  uint64_t min_duration_ns;
  uint32_t max_depth;
  bool c_functions;
  bool running;
  uint32_t generation; /* of the last start */
  struct st_hook_counts counts;
};

extern struct st_hooks st_hooks;

/* ---- back end: one of monitoring.c and profile.c ------------------------ */

/* Registers callbacks on all threads, those to come included.  False: error
 * set, nothing registered. */
bool st_backend_start(void);
void st_backend_stop(void);
/* Looks how far all threads are still followed. */
void st_backend_check(void);
/* Types and functions that the back end needs.  -1: error set. */
int st_backend_add(PyObject* module);

/* ---- names of C functions ------------------------------------------------ */

/* Whether calls of this object are traced as C functions. */
bool st_is_c_function(PyObject* callable);
/* A borrowed str, good until st_c_names_clear; NULL: no memory. */
PyObject* st_c_function_name(PyObject* callable);
void st_c_names_clear(void);

/* ---- filter ---------------------------------------------------------------- */

/* False: error set. */
bool st_code_filter_start(void);
/* Whether calls of this code are traced.  Asks `accepts` once for each. */
bool st_code_accepted(PyObject* code);

/* ---- around ---------------------------------------------------------------- */

int st_add_around(PyObject* module);

/* ---- garbage collector ----------------------------------------------------- */

/* gc_callback(category, thread_track): a callable for gc.callbacks. */
PyObject* st_collections_callback(PyObject* module, PyObject* args);

/* ---- errors ---------------------------------------------------------------- */

/* What our own Python raised is dropped, but for what a signal handler of the
 * program raised in it (bind/common/handler_errors.h). */
void st_drop_error(void);

#endif /* STRETTO_HOOKS_HOOKS_H_ */
