/* GIL waits: each wait for the GIL of the main interpreter is a slice of a
 * category, on a track below that of the thread which waits.
 *
 * CPython waits for its GIL in one place (take_gil), by a condition and its
 * mutex; no other code uses that condition:
 *
 *   lock mutex
 *   while the GIL is held:  pthread_cond_timedwait(condition, mutex, 5 ms)
 *   take the GIL, unlock mutex
 *
 * While waits are recorded, the calls of libpython (or of the executable) to
 * that function go to ours (probes/import_slots.h).  For the GIL's condition it
 * reads the clock before the first call and after the one that has found the
 * GIL free.  A free GIL is taken as before: no call, no cost.
 *
 *   waiting thread    our function -> ring { begin, end, holder, thread }
 *   native thread     takes the GIL every ST_GIL_PAUSE_MS if the ring has waits,
 *                     and writes them; so does the end of the recording
 *
 * A thread in take_gil has no thread state and no GIL, so it cannot write events
 * itself: with a full chunk it would have to wait.  It only adds to the ring,
 * without a lock or an allocation: the mutex of the condition, which it holds
 * anyway, lets only one thread add at a time.
 *
 * Accuracy: exact, for all waits of ST_MIN_GIL_WAIT_NS or more; shorter ones are
 * counted.  A thread that gives up the GIL because another one has asked for it
 * first waits until that one runs: these microseconds do not count.
 *
 * Limits: the main interpreter's GIL, also for sub-interpreters that share it;
 * no free-threaded builds.  A wait that has not ended at the end of the
 * recording is left out.  A full ring drops waits, and counts them.
 *
 * Fork: pause_gil_waits() before, resume_gil_waits() after.  The child drops
 * what the ring has.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum {
  ST_MIN_GIL_WAIT_NS = 20000,
  ST_GIL_PAUSE_MS = 50,
  ST_GIL_WAITS = 8192, /* The waits in the ring. */
};

/* Adds the functions to the module.  Returns -1 with an exception set. */
int st_add_gil_waits(PyObject* module);
