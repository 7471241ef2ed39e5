/* Lock calls: a call of a method that acquires a lock, as the interpreter makes
 * it, and what its arguments ask for.
 *
 *   acquire()  acquire(True, 5)   wait if the lock is taken
 *   acquire(False)                never wait
 *   acquire("x")                  unclear: the method itself decides
 *
 * A call holds borrowed references, as long as the method runs.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { ST_WITH_KEYWORDS = METH_VARARGS | METH_KEYWORDS };

/* `flags` has the form of the function, one of ST_WITH_KEYWORDS, METH_FASTCALL
 * and METH_NOARGS.  The arguments are a tuple and the dict `names`, or an array,
 * whose last values have the `names` of a tuple. */
struct st_lock_call {
  PyObject* lock;
  PyCFunction function;
  int flags;
  PyObject* const* array;
  Py_ssize_t count;
  PyObject *tuple, *names;
};

enum st_lock_wish { ST_WAITS_IF_TAKEN, ST_NEVER_WAITS, ST_UNCLEAR_WISH };

PyObject* st_lock_call_run(const struct st_lock_call* call);
/* Reads the arguments.  Runs no code of theirs, and sets no exception: whatever
 * the method might refuse is unclear. */
enum st_lock_wish st_lock_call_wish(const struct st_lock_call* call);
