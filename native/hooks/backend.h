/* The interface of the back ends, which report calls to the tracer:
 * monitoring.c on CPython 3.12 and later, profile.c on 3.11.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "hooks/code_records.h"

/* Registers the callbacks on all threads, including threads that start later.
 * Returns false, with an exception set and nothing registered, on failure. */
bool st_backend_start(void);
void st_backend_stop(void);
/* Enables all disabled events of calls again. */
void st_backend_restart(void);
/* Disables all events of calls, at the end of the process.  Only
 * st_backend_stop() may be called afterwards. */
void st_backend_silence(void);

/* Finds the threads on which the program has replaced our callbacks, and counts
 * these threads. */
void st_backend_check(void);

/* Makes the interpreter report the calls that a code object makes, for auto
 * detail. */
void st_backend_watch_calls(struct st_code_record* record);

/* Adds the types and functions of the back end to the module.  Returns -1 with
 * an exception set on failure. */
int st_backend_add(PyObject* module);
