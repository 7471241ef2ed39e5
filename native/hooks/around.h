/* The Python type Around: a function with observers, without a Python frame.
 *
 * A profiler that replaces `logging.Logger.callHandlers` by a Python wrapper
 * shows up in the program's tracebacks.  An Around calls
 *
 *   token = before(*args, **kwargs)
 *   result = function(*args, **kwargs)
 *   after(token, result)                  unless token is None
 *
 * and returns or raises what the function does; the result of a function that
 * raises is None for `after`.  Exceptions of the observers are dropped.  It
 * binds like a function, and has the function's attributes.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Adds the type to the module.  -1: an exception is set. */
int st_add_around(PyObject* module);
