/* Which code is traced: calls a Python function once per code object.
 *
 * The answer is kept with the code object itself, in a slot of its "extra"
 * data: it is freed with the code, and no table is searched.
 *
 *   generation of the tracer << 1 | accepted        0: not known
 *
 * A new start of the tracer has a new generation, and asks again.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* False: an exception is set. */
bool st_code_filter_start(void);
/* Whether calls of this code are traced.  Calls `accepts` once for each. */
bool st_code_accepted(PyObject* code);
