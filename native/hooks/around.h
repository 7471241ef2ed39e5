/* The Python type Around: calls observers before and after a function, without
 * a Python frame of its own.
 *
 * A Python wrapper around `logging.Logger.callHandlers` would appear in the
 * program's tracebacks.  An Around does not.  It calls
 *
 *   token = before(*args, **kwargs)
 *   result = function(*args, **kwargs)
 *   after(token, result)                  unless token is None
 *
 * and returns the function's result or raises its exception; `after` gets None
 * as the result of a function that raised.  Without `before` the function is
 * Handle._run of asyncio, whose calls are the steps of tasks (task_lives.h):
 *
 *   result = function(handle)
 *   after(begin_ns, handle)        if the call reached auto detail's threshold
 *
 * Exceptions of observers are dropped.  An Around binds to objects like a
 * function, and has the function's attributes, also `__class__`: for
 * isinstance() and the module `inspect` it is a function.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Adds the type Around to the module.  Returns -1 with an exception set on
 * failure. */
int st_add_around(PyObject* module);
