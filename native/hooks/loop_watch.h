/* Loop watch: finds callbacks that block an event loop of asyncio, while they
 * do so.
 *
 * A loop runs iterations (BaseEventLoop._run_once): it waits for events, and
 * then calls callbacks (Handle._run).  Two observers around each of the two
 * (around.h) keep an entry for the iteration:
 *
 *   entry   thread | begin of its first callback | begin of the running one
 *
 *   time    |--- waits ---|== callback ==|==== callback ====|--- waits ---
 *                         ^ first                           ^ last
 *
 * The busy time of an iteration, from first to last, is the lag: a callback that
 * became ready at its beginning had to wait that long.  on_lag(first, last) gets
 * the longest one of each ST_LAG_PERIOD_NS, and each of ST_LONG_LAG_NS or more.
 *
 * A native thread looks at the entries every ST_LOOP_PAUSE_MS, without the GIL.
 * If a callback has run for longer than the limit, the thread takes the GIL and
 * calls on_blocked(thread, begin, handle): the stack of the loop's thread is
 * then that of the blocking code.  When a callback of that length has ended,
 * on_end(thread, begin, end, handle, reported) is called on the loop's thread; or
 * on the native one, after on_blocked(), if the callback ended during that.  A
 * callback that never releases the GIL is reported by its end only.
 *
 * Before that, on_loop(thread) is called on each thread that runs a loop, once.
 *
 * Limits: ST_LOOPS loops run at the same time; callbacks of others are not
 * watched.  Handles of uvloop are its own: only tasks' steps are watched there,
 * and only while tasks are recorded, and it has no lag.
 *
 * Threads: entries change with the GIL only; the thread reads `begin` without
 * it.  Fork: pause_loop_watch() before, resume_loop_watch() after.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum {
  ST_LOOPS = 64,
  ST_LOOP_PAUSE_MS = 20,
  ST_LAG_PERIOD_NS = 50000000,
  ST_LONG_LAG_NS = 10000000,
};

/* Adds the functions to the module.  Returns -1 with an exception set. */
int st_add_loop_watch(PyObject* module);
