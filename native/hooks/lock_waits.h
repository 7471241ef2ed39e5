/* Lock waits: each wait for a lock of `_thread` is a slice of a category.
 *
 * The interpreter finds the C function of a method, such as `lock.acquire`, in
 * a table entry (PyMethodDef) that all locks share, at each call.  While waits
 * are recorded, the entry has a function of ours:
 *
 *   method -> PyMethodDef { acquire } -> ours -> the original function
 *
 * So locks that exist already and names that are bound already are covered, and
 * no object, type or name of the program changes.  `with lock`, Condition,
 * Event, Semaphore, Barrier and queue.Queue end up there, too.
 *
 *   a free lock    is taken by the original function; nothing is measured
 *                  (lock_flag.h tells that it is free)
 *   an attempt     `acquire(False)` and a time of 0 never wait: the same
 *   a taken lock   the time before and after the original function is read; a
 *                  wait of ST_MIN_LOCK_WAIT_NS or more is a slice, with the
 *                  place where the lock was made and the thread that held it.
 *                  Shorter ones are only counted.
 *
 * Limits: only the main interpreter, and no free-threaded builds.  Locks of C
 * code are not covered, and neither is _queue.SimpleQueue.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { ST_MIN_LOCK_WAIT_NS = 20000 };

/* Adds the functions to the module.  Returns -1 with an exception set. */
int st_add_lock_waits(PyObject* module);
