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

/* Prepares the functions below.  Returns false with an exception set on
 * failure. */
bool st_lock_call_start(void);

typedef PyObject* (*st_lock_array_function)(PyObject* self,
                                            PyObject* const* array,
                                            Py_ssize_t count, PyObject* names);

static inline PyObject* st_lock_call_run(const struct st_lock_call* call) {
  if (call->flags == ST_WITH_KEYWORDS)
    return ((PyCFunctionWithKeywords)(void (*)(void))call->function)(
        call->lock, call->tuple, call->names);
  if (call->flags == METH_NOARGS)
    return call->function(call->lock, NULL);
  return ((st_lock_array_function)(void (*)(void))call->function)(
      call->lock, call->array, call->count, call->names);
}

/* The same as st_lock_call_wish(), for a call with arguments. */
enum st_lock_wish st_lock_call_named_wish(const struct st_lock_call* call);

/* Reads the arguments.  Runs no code of theirs, and sets no exception: whatever
 * the method might refuse is unclear. */
static inline enum st_lock_wish st_lock_call_wish(
    const struct st_lock_call* call) {
  bool has_any = call->names || call->count ||
                 (call->tuple && PyTuple_GET_SIZE(call->tuple));
  return has_any ? st_lock_call_named_wish(call) : ST_WAITS_IF_TAKEN;
}
