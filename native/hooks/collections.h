/* Records runs of the garbage collector as slices, on the thread that runs
 * them.
 *
 * The callback in gc.callbacks is native.  A callback written in Python would
 * run the program's pending signal handlers at its first instruction.  If a
 * handler raised an exception, the collector would print and drop it.
 *
 * The collector runs on one thread at a time and never inside itself.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The Python function gc_callback(category, thread_track).  Returns a callable
 * for gc.callbacks. */
PyObject* st_collections_callback(PyObject* module, PyObject* args);
