/* Code filter: calls a Python function once per code object, to decide whether
 * its calls are traced, and under which name.
 *
 * The results are stored in the code object itself, in two slots of its "extra"
 * data.  So they are freed with the code, and no table has to be searched.
 *
 *   generation of the tracer << 3 | starter << 2 | foreign << 1 | accepted
 *                                                   0: not known
 *   the name of its slices, a str                   NULL: its qualified name
 *
 * Foreign code (option my_code) is recorded only where the program's own code
 * calls it.  The function returns the name of foreign code in a tuple.
 *
 * A starter has no slices, but the C functions that it calls have: it starts a
 * thread's function, which may be one.  The function returns `...` for it.
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
/* Does the same for code that runs with these globals, a dict or NULL.  By
 * default they are those of the innermost call. */
bool st_code_accepted_in(PyObject* code, PyObject* globals);
/* Returns whether the code is known as a starter. */
bool st_code_is_starter(PyObject* code);
enum st_caller {
  ST_CALLER_OWN,     /* The program's own code, or code that is not known. */
  ST_CALLER_FOREIGN, /* Foreign code. */
  ST_CALLER_SKIPPED, /* Code without slices: its own caller decides. */
};

/* Returns what kind of caller the code is.  Whether a call of foreign code is
 * recorded depends on this. */
enum st_caller st_code_as_caller(PyObject* code);
/* The innermost call of the calling thread is a call of `code`.  Returns true
 * if `code` is foreign and was called by foreign code: such a call is not
 * recorded. */
bool st_call_is_inner_foreign(PyObject* code);
/* Returns the name of the slices of this code object, as a borrowed str. */
PyObject* st_code_name(PyObject* code);
