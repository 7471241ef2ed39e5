/* Object sizes: what sys.getsizeof() returns, without running Python code.
 *
 * A type's method __sizeof__ is called if it is written in C; of a class whose
 * method is Python code, that of `object` is.  Before an object are the head of
 * the garbage collector and, in newer versions, of its attributes.
 *
 * Made for a copy of the process: it may make an int (hooks/copy_memory.h).
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* How the objects of a type are measured. */
struct st_object_size {
  PyCFunction size_of;
  uint64_t before; /* Bytes before the object. */
};

/* Returns false with an exception set when out of memory. */
bool st_object_sizes_init(void);
struct st_object_size st_object_size_of(PyTypeObject* type);
uint64_t st_object_size(const struct st_object_size* s, PyObject* o);
