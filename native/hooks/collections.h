/* Runs of the garbage collector, as slices on the thread that runs them.
 *
 * A callback in gc.callbacks must not be Python code: its first instruction
 * would run the program's signal handlers, and the collector prints and drops
 * what these raise.
 *
 * The collector runs on one thread at a time and never inside itself.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* gc_callback(category, thread_track): a callable for gc.callbacks. */
PyObject* st_collections_callback(PyObject* module, PyObject* args);
