/* Object names: how the types of an object graph are named.
 *
 *   a type        shop.Order, list, collections.deque     (no `builtins.`)
 *   a module      module shop
 *   a code        frame Shop.serve
 *
 * Made for a copy of the process: it may make strings (hooks/copy_memory.h).
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Returns false with an exception set when out of memory. */
bool st_object_names_init(void);
/* Writes the name of a type, module or code into `text`.  Returns its size; what
 * has no room is cut. */
size_t st_object_type_name(PyObject* o, char* text, size_t room);
/* Writes the name of a field.  A blank would end the field's type for readers,
 * so it becomes an underscore. */
size_t st_object_field_name(PyObject* name, char* text, size_t room);
