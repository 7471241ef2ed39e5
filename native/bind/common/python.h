/* Python.h, as every file of the bindings includes it.
 *
 * Only public API of CPython 3.11 and later is used in native/bind.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The branch that a hot path takes, for the compiler's layout of code. */
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A row of a method table for a function of FASTCALL with keywords. */
#define ST_BIND_KEYWORDS(name, function, doc)      \
  {                                                \
    name, (PyCFunction)(void (*)(void))(function), \
        METH_FASTCALL | METH_KEYWORDS, doc         \
  }

/* Defines the part of the module that the file `name`.c adds: types, functions,
 * constants.  module.c lists all parts.  -1: an exception is set. */
#define ST_BIND_PART(name)                  \
  int st_bind_add_##name(PyObject* module); \
  int st_bind_add_##name(PyObject* module)
