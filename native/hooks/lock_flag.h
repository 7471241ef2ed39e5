/* Lock flag: the byte of a lock of `_thread` that says whether the lock is taken.
 *
 * `locked()` returns it, by three indirect calls, which a processor does not
 * foretell after a wait.  The structure of a lock is private, so the byte is found
 * by an experiment: it is the only one that differs between a free lock and a
 * taken one.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the offset of the flag in the locks of the module `_thread`; 0 if there is
 * no such byte.  Sets no exception. */
size_t st_lock_flag_find(PyObject* module);

static inline bool st_lock_flag(const PyObject* lock, size_t offset) {
  return ((const unsigned char*)lock)[offset] & 1;
}
