/* Code filter: calls a Python function once per code object, to decide whether
 * its calls are traced, and under which name.
 *
 * The results are stored in the code object itself, in two slots of its "extra"
 * data.  So they are freed with the code, and no table has to be searched.
 *
 *   generation of the tracer << 1 | accepted        0: not known
 *   the name of its slices, a str                   NULL: its qualified name
 *
 * Each start of the tracer has a new generation, for which the function is
 * called again.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Reserves a slot for the results in the "extra" data of code objects.  Returns
 * false with an exception set on failure. */
bool st_code_filter_start(void);
/* Returns whether calls of this code object are traced.  Calls the Python
 * function `accepts` once for each code object. */
bool st_code_accepted(PyObject* code);
/* Returns the name of the slices of this code object, as a borrowed str. */
PyObject* st_code_name(PyObject* code);
