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

/* Hints for the compiler: the condition is usually true, or usually false. */
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Defines a row of a method table for a FASTCALL function with keywords. */
#define ST_BIND_KEYWORDS(name, function, doc)      \
  {                                                \
    name, (PyCFunction)(void (*)(void))(function), \
        METH_FASTCALL | METH_KEYWORDS, doc         \
  }

/* Ends a deallocator: frees the object and drops its reference to its type. */
static inline void st_bind_free(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

/* Defines the function that adds the types, functions and constants of the file
 * `name`.c to the module.  module.c calls it.  It returns -1 with an exception
 * set on failure. */
#define ST_BIND_PART(name)                  \
  int st_bind_add_##name(PyObject* module); \
  int st_bind_add_##name(PyObject* module)
