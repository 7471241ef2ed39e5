/* With methods: `__enter__` and `__exit__` of types whose `with` has to be
 * fast.
 *
 * Until CPython 3.13 each `with` binds both methods to its object.  For
 * ordinary methods it allocates two objects, tracks them for the garbage
 * collector and frees them again, which takes a third of the time of an empty
 * `with`.  With methods are bound as small objects from a free list:
 *
 *   type.__enter__     the ordinary method, which takes the object
 *   object.__enter__   the bound with method.  It has the attributes of the
 *                      ordinary bound method
 *
 * From CPython 3.14 on, `with` calls methods without binding them, and a type
 * keeps its ordinary methods.
 */
#pragma once

#include "bind/common/python.h"

/* Makes `__enter__` and `__exit__` of a type with methods.  Their flags are
 * METH_NOARGS or METH_FASTCALL.  Returns -1 with an exception set on
 * failure. */
int st_bind_with_methods(PyTypeObject* type);
