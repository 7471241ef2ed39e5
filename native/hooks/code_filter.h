/* Code filter: calls a Python function once per code object, to decide whether
 * its calls are traced.
 *
 * The result is stored in the code object itself, in a slot of its "extra"
 * data.  So it is freed with the code, and no table has to be searched.
 *
 *   generation of the tracer << 1 | accepted        0: not known
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
