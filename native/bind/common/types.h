/* Heap types of the extension: how they are added, and how they are recognised.
 *
 * Our types are final: no Python class derives from them, except where a type
 * says so.  So the deallocator of an object identifies its type, in any
 * interpreter and without a global pointer to the type.
 */
#pragma once

#include "bind/common/python.h"

/* Makes a heap type from its spec, and adds the type to the module under the
 * name in the spec.  Returns -1 with an exception set on failure. */
int st_bind_add_type(PyObject* module, PyType_Spec* spec);

/* Makes and adds a heap type like st_bind_add_type.  Stores the type in *type,
 * or NULL on failure. */
int st_bind_keep_type(PyObject* module, PyType_Spec* spec, PyTypeObject** type);

/* Returns whether `object` belongs to the type whose deallocator is `dealloc`.
 * If not, sets TypeError: "expected a `expected`, not a ...". */
bool st_bind_check(PyObject* object, destructor dealloc, const char* expected);
