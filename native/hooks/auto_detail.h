/* Auto detail: what can be seen is recorded, at a cost that one leaves on.
 *
 *   events (monitoring.c)             looks (look.c)
 *        |  functions that are on          |  functions that are switched off
 *        |                                 v
 *        |                            sightings.h
 *        v                                 |
 *   shown_calls.h   <----------------------'
 *        |  calls as long as the threshold: slices
 *        '  shorter ones: counted in their caller, and by function
 *
 * A function with so many short calls in a row is switched off: the interpreter
 * reports its calls no more, they cost nothing, and nobody knows their number.
 * A look that meets it on a stack arms it: its next call is reported, and it is
 * on again if that was a long one.
 *
 * Functions that neither call nor loop are off from the start.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

enum { ST_DEFAULT_THRESHOLD_NS = 50000 };

/* Before the events are on. */
void st_auto_start(const char* threshold_file);
/* After a fork: looks again. */
void st_auto_resume(void);
/* After the events are off: ends all slices. */
void st_auto_stop(void);

/* A call of the code begins or ends at the calling thread's innermost frame.
 * False: the interpreter needn't report this place again. */
bool st_auto_enter(PyObject* code);
bool st_auto_leave(PyObject* code);

/* What was seen since the start: a dict.  NULL: an exception is set. */
PyObject* st_auto_totals(void);
