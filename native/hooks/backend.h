/* How the tracer hears of calls: monitoring.c on CPython 3.12 and later,
 * profile.c on 3.11.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Registers callbacks on all threads, also those that start later.  False: an
 * exception is set, and nothing is registered. */
bool st_backend_start(void);
void st_backend_stop(void);

/* Checks on which threads the program has replaced the callbacks. */
void st_backend_check(void);

/* Adds the types and functions that the back end needs.  -1: an exception is
 * set. */
int st_backend_add(PyObject* module);
