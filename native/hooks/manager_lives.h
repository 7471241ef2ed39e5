/* Manager lives: traces context managers that are made of generators
 * (contextlib's contextmanager and asynccontextmanager), from enter to exit
 * (lives.h).
 *
 *   enter | body of the with statement | exit
 *   step  | suspended                  | step, the last one
 *
 * A step of an asynchronous context manager is a coroutine, which may be
 * suspended itself.  The step ends when the coroutine is destroyed: `async
 * with` does so as soon as the coroutine has returned.  The callback of a weak
 * reference reports this.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Adds the functions for context managers to the module.  Returns -1 with an
 * exception set on failure. */
int st_add_manager_lives(PyObject* module);
