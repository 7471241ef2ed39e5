/* Records runs of the garbage collector as slices, on the thread that runs
 * them.
 *
 * The callback in gc.callbacks is native.  Python code would run the program's
 * pending signal handlers at its first instruction, and the collector prints
 * and drops the exceptions of callbacks.
 *
 * The collector runs on one thread at a time and never inside itself.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The Python function gc_callback(category, thread_track).  Returns a callable
 * for gc.callbacks. */
PyObject* st_collections_callback(PyObject* module, PyObject* args);
