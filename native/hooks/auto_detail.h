/* Auto detail: records the calls that are long enough to be visible, at a low
 * cost.
 *
 *   events (monitoring.c)            samples (stack_sampler.c)
 *        |  functions that are            |  functions that are
 *        |  switched on                   |  switched off
 *        |                                v
 *        |                           stack_samples.h
 *        v                                |
 *   shown_calls.h   <---------------------'
 *        |  calls as long as the threshold: slices
 *        '  shorter ones: counted in their caller, and by function
 *
 * A function is switched off after ST_SHORT_CALLS short calls in a row.  The
 * interpreter then no longer reports its calls, so they cost nothing and are
 * not counted.
 *
 * If the sampling thread finds a switched-off function on a stack, it arms the
 * function: the interpreter reports its next call.  If that call is long, the
 * function is switched on again.
 *
 * Functions that contain neither calls nor loops are switched off from the
 * start.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/shown_calls.h"

/* Starts auto detail, before the interpreter's events are switched on. */
void st_auto_start(const char* threshold_file);
/* Stops the sampling thread and the merging thread before a fork, and starts
 * them again after it. */
void st_auto_pause(void);
void st_auto_resume(void);
/* Starts auto detail in the child of a fork: all functions are switched on
 * again. */
void st_auto_begin_in_child(void);
/* Starts the sampling in that child: at its first call, or on CPython 3.11 when
 * it has connected. */
void st_auto_begin_sampling(void);
/* Stops the sampling thread and ends all slices of auto detail.  Called after
 * the interpreter's events were switched off. */
void st_auto_end_slices(void);
/* Does the same, and removes all records of functions. */
void st_auto_stop(void);

/* Handles the beginning of a call of the code.  The frame of the call is the
 * innermost frame of the calling thread.  `resumes` says that a generator or
 * coroutine continues.  Returns false if the interpreter need not report events
 * at this code location again. */
bool st_auto_enter(PyObject* code, bool resumes);
/* Handles the end of a call, or of a step of one.  `raised` is the type of the
 * exception that left the call, or NULL; `yielded` the value with which a
 * generator or coroutine is suspended, or NULL.  The result is that of
 * st_auto_enter(). */
bool st_auto_leave(PyObject* code, PyObject* raised, PyObject* yielded);

/* Handles the begin of a call that `code` makes at `offset`.  The callable is a
 * C function or another object.  The result is that of st_auto_enter(). */
bool st_auto_c_call(PyObject* code, PyObject* offset, PyObject* callable);
/* Handles the end of a call of a C function. */
void st_auto_c_return(void);

/* The work of the functions below. */
void st_auto_note_wait(PyThreadState* thread, uint64_t begin);
void st_auto_end_wait(uint64_t begin, uint64_t end);

/* A wait of the calling thread begins, which may become a slice; `thread` is the
 * thread's state.  Calls that samples find around the wait are made to begin before
 * it.  Waits within it are left alone. */
static inline void st_auto_wait_begins(PyThreadState* thread, uint64_t begin) {
  if (ST_UNLIKELY(st_hooks.auto_detail))
    st_auto_note_wait(thread, begin);
}
/* That wait has ended; its slice will be written.  The calls that samples have found
 * around it are made to end after it, and a slice that samples have found for it
 * gets its times. */
static inline void st_auto_wait_ends(uint64_t begin, uint64_t end) {
  if (ST_UNLIKELY(st_hooks.auto_detail))
    st_auto_end_wait(begin, end);
}
/* That wait is over.  Does nothing if it has ended; else it has no slice. */
static inline void st_auto_wait_is_over(uint64_t begin) {
  st_auto_wait_ends(begin, 0);
}

/* A garbage collection begins on the calling thread; its slice is not written
 * yet. */
void st_auto_collection_begins(void);
/* The garbage collection has ended; the end of its slice is written. */
void st_auto_collection_ends(void);

/* A step of a task begins on the calling thread, at `now`.  Returns the step
 * around it: the event loop may run in a step of another one. */
struct st_span st_auto_step_begins(uint64_t now);
/* The step has ended; its slice will be written.  Ends the slices of calls in it
 * that only samples have found. */
void st_auto_step_ends(uint64_t now);
/* Returns the end of the slice of the step that began at `begin` and ends now:
 * earlier if the thread has left its stack since, 0 if that is unknown. */
uint64_t st_auto_step_end(uint64_t begin, uint64_t now);
/* Forgets the step that began at `begin`.  `outer` is the step around it;
 * `written` says that its slice was written. */
void st_auto_step_is_over(uint64_t begin, struct st_span outer, bool written);

/* Writes an instant event with the sampling period of the stacks and the times
 * of the threads, unless the process is too short for it. */
void st_auto_write_period(void);
/* Returns a dict with the counts and times of auto detail since its start.
 * Returns NULL with an exception set on failure. */
PyObject* st_auto_totals(void);
