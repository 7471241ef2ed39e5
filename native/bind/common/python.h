/* Includes Python.h.  Every file of the bindings includes it through this
 * header.
 *
 * Only public API of CPython 3.11 and later is used in native/bind, but for
 * common/exempt.c: loading `_pyhooks` for it would take half a millisecond.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef Py_LIMITED_API
#include "bind/common/limited_api.h"
#define ST_BIND_MODULE "stretto._importer"
#else
#define ST_BIND_MODULE "stretto._native"
#endif

/* Hints for the compiler that a condition is usually true, or usually false. */
/* ALWAYS_INLINE marks functions that are parts of a hot path.  RARE marks
 * functions that a hot path seldom calls: they are not inlined, so that the
 * path stays short. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define RARE __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Definitions of functions of CPython 3.13 that the bindings use, for earlier
 * versions. */
#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#define PyList_GetItemRef(list, index) Py_XNewRef(PyList_GetItem(list, index))

static inline int PyDict_GetItemRef(PyObject* dict, PyObject* key,
                                    PyObject** value) {
  *value = Py_XNewRef(PyDict_GetItemWithError(dict, key));
  return *value ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int PyWeakref_GetRef(PyObject* reference, PyObject** object) {
  PyObject* borrowed = PyWeakref_GetObject(reference);
  *object = borrowed && borrowed != Py_None ? Py_NewRef(borrowed) : NULL;
  return *object ? 1 : borrowed ? 0 : -1;
}
#endif

/* Whether freed objects are kept for reuse, in lists that the GIL guards.  A
 * free-threaded build does not need them: its allocator has such lists, one per
 * thread. */
#ifdef Py_GIL_DISABLED
enum { ST_FREE_LISTS = false };
#else
enum { ST_FREE_LISTS = true };
#endif

/* The type of a FASTCALL function with keywords. */
typedef PyObject* st_bind_function(PyObject* self, PyObject* const* args,
                                   Py_ssize_t count, PyObject* kwnames);

/* Defines a row in a method table, for a FASTCALL function with keywords. */
#define ST_BIND_KEYWORDS(name, function, doc)      \
  {                                                \
    name, (PyCFunction)(void (*)(void))(function), \
        METH_FASTCALL | METH_KEYWORDS, doc         \
  }

/* Defines the spec of a heap type: name in the module, struct of its objects,
 * additional flags, slots. */
#define ST_BIND_SPEC(name, object, flags, slots)                              \
  {                                                                           \
    ST_BIND_MODULE "." name, sizeof(object), 0, Py_TPFLAGS_DEFAULT | (flags), \
        slots                                                                 \
  }

/* Frees an object and drops the reference to its type.  A deallocator calls
 * this function last. */
static inline void st_bind_free(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
#ifdef Py_LIMITED_API
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
#else
  type->tp_free(object);
#endif
  Py_DECREF(type);
}

/* Defines the function that adds the types, functions and constants of the file
 * `name`.c to the module.  module.c calls it.  It returns -1 with an exception
 * set on failure. */
#define ST_BIND_PART(name)                  \
  int st_bind_add_##name(PyObject* module); \
  int st_bind_add_##name(PyObject* module)
