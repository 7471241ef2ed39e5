/* I/O waits: calls of C functions that wait for files, peers and timers, such as
 * `socket.recv`, `FileIO.readinto` and `time.sleep`, are slices of templates.
 *
 * As with lock waits (lock_waits.h), the table entry of the C function gets a
 * function of ours, which reads the time before and after the original one:
 *
 *   method -> PyMethodDef { recv } -> ours -> the original function
 *
 * So nothing of the program changes.  A call that lasts `min_ns` or longer is a
 * slice; what it has waited for is told by a function in Python, from the
 * object or the first argument.
 *
 * Limits: only the main interpreter, and no free-threaded builds.  An entry stays
 * in the table for ever: at most ST_IO_ENTRIES functions are observed.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { ST_IO_ENTRIES = 40 };

/* Adds the functions to the module.  Returns -1 with an exception set. */
int st_add_io_waits(PyObject* module);
