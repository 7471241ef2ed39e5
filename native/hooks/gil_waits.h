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
 * A thread that gives up the GIL because another one has asked for it waits, too,
 * until that one has taken it (drop_gil), by a second condition and mutex:
 *
 *   lock mutex
 *   if no other thread has taken the GIL:  pthread_cond_wait(condition, mutex)
 *   unlock mutex
 *
 * While waits are recorded, the calls of libpython (or of the executable) to these
 * functions go to ours (probes/import_slots.h).  For the GIL's conditions it reads
 * the clock before the first call and after the last one, which has found the GIL
 * free, or handed over.  A free GIL is taken as before: no call, no cost.
 *
 *   waiting thread    our function -> ring { begin, end, holder, thread }
 *   native thread     takes the GIL every ST_GIL_PAUSE_MS if a ring has waits,
 *                     and writes them; so does the end of the recording
 *
 * A thread that waits has no thread state and no GIL, so it cannot write events
 * itself: with a full chunk it would have to wait.  It only adds to the ring of the
 * mutex that it holds (core/wait_ring.h), without a lock or an allocation.
 *
 * Accuracy: exact, for all waits of ST_MIN_RING_WAIT_NS or more; shorter ones are
 * counted.
 *
 * Limits: the main interpreter's GIL, also for sub-interpreters that share it;
 * no free-threaded builds.  A wait that has not ended at the end of the
 * recording is left out.
 *
 * Fork: pause_gil_waits() before, resume_gil_waits() after.  The child drops
 * what the rings have.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { ST_GIL_PAUSE_MS = 50 };

/* Adds the functions to the module.  Returns -1 with an exception set. */
int st_add_gil_waits(PyObject* module);
