/* Coroutine bounds: notes when calls of coroutines begin and end, and tells it to
 * the lanes of tasks (core/coroutine_times.h).
 *
 *   monitoring.c, auto_detail.c   events: the first step, the return
 *   shown_calls.c                 samples, for code that is switched off
 *   coroutine_begin(), _end()     the questions of profilers/coroutine_calls.py
 *
 * Times are noted only while tasks are watched (task_lives.h).  The GIL guards
 * them.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the code is that of a coroutine or of an asynchronous generator. */
static inline bool st_code_suspends(PyObject* code) {
  return ((PyCodeObject*)code)->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR);
}

/* Begins to note times.  Returns false with an exception set on failure. */
bool st_coroutine_bounds_start(void);
void st_coroutine_bounds_stop(void);

/* Notes that a step of the coroutine in this frame begins.  `resumes`: it is not
 * the first one. */
void st_coroutine_step_begins(PyObject* code, uint64_t frame, uint64_t now,
                              bool resumes);
/* Notes that a step ends.  `yielded` is the value with which the coroutine is
 * suspended; NULL if it has returned or raised. */
void st_coroutine_step_ends(PyObject* code, uint64_t frame, uint64_t now,
                            PyObject* yielded);
/* Notes that samples have found a step: it began at `first`, or `unsure_ns`
 * earlier, and lasted until `last`.  `first` is 0 if an event has told it. */
void st_coroutine_step_seen(PyObject* code, uint64_t frame, uint64_t first,
                            uint64_t unsure_ns, uint64_t last);

/* Adds the functions for coroutines to the module.  Returns -1 with an exception
 * set on failure. */
int st_add_coroutine_bounds(PyObject* module);
