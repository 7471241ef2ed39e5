/* Auto detail: records the calls that are long enough to be visible, at a low
 * cost.
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
 * A function is switched off after ST_SHORT_CALLS short calls in a row: the
 * interpreter no longer reports its calls, so they cost nothing and are not
 * counted.  When a look finds it on a stack, it arms the function: the
 * interpreter reports the next call, and the function is on again if that call
 * was long.
 *
 * Functions that contain neither calls nor loops are off from the start.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Starts auto detail, before the interpreter's events are switched on. */
void st_auto_start(const char* threshold_file);
/* Starts the look thread of auto detail again after a fork (look.h). */
void st_auto_resume(void);
/* Stops the look thread and ends all slices of auto detail, after the
 * interpreter's events were switched off. */
void st_auto_stop(void);

/* Handles the begin of a call of the code, whose frame is the innermost one of
 * the calling thread. Returns false if the interpreter need not report events
 * at this code location again. */
bool st_auto_enter(PyObject* code);
/* Handles the end of a call. `raised` is the type of the exception that left
 * the call, or NULL. The result is that of st_auto_enter(). */
bool st_auto_leave(PyObject* code, PyObject* raised);

/* Returns a dict with the counts and times of auto detail since its start.
 * Returns NULL with an exception set on failure. */
PyObject* st_auto_totals(void);
