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
#include <stdbool.h>

#include "hooks/python_layout.h"

enum { ST_WITH_KEYWORDS = METH_VARARGS | METH_KEYWORDS };

/* `flags` has the form of the function, one of ST_WITH_KEYWORDS, METH_FASTCALL
 * METH_NOARGS and METH_O, which has its only argument as `tuple`.  The arguments are a tuple and the dict `names`, or an array,
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

typedef PyObject* (*st_lock_array_function)(PyObject* self,
                                            PyObject* const* array,
                                            Py_ssize_t count, PyObject* names);

static inline PyObject* st_lock_call_run(const struct st_lock_call* call) {
  if (call->flags == ST_WITH_KEYWORDS)
    return ((PyCFunctionWithKeywords)(void (*)(void))call->function)(
        call->lock, call->tuple, call->names);
  if (call->flags == METH_NOARGS || call->flags == METH_O)
    return call->function(call->lock, call->tuple);
  return ((st_lock_array_function)(void (*)(void))call->function)(
      call->lock, call->array, call->count, call->names);
}

/* Reads the arguments.  Runs no code of theirs, and sets no exception: whatever
 * the method might refuse is unclear. */
enum st_lock_wish st_lock_call_wish(const struct st_lock_call* call);

/* Whether the call has arguments without names. */
static inline bool st_lock_call_has_unnamed(const struct st_lock_call* call) {
  return call->flags == ST_WITH_KEYWORDS ? PyTuple_GET_SIZE(call->tuple) > 0
                                         : call->count > 0;
}

/* Whether a call that has returned False had only a positive timeout, which is a
 * float.  Says false in unusual cases.  It compares no name: with a float as
 * `blocking`, it would not have returned False. */
static inline bool st_lock_call_has_timeout(const struct st_lock_call* call) {
  PyObject *name, *value;
  return call->flags == ST_WITH_KEYWORDS && call->names &&
         st_python_only_item(call->names, &name, &value) &&
         PyFloat_CheckExact(value) && PyFloat_AS_DOUBLE(value) > 0;
}
