/* The struct of the Python type Category (category.h).
 *
 * One object per name, which is never freed: pointers to it need no reference.
 * `enabled` has a bit per slot of instances.h; a disabled event reads nothing
 * else.  Changed with the GIL.
 */
#pragma once

#include "bind/common/python.h"

enum { MAX_CATEGORIES = 65535 };

typedef struct {
  PyObject_HEAD
  /* One bit per slot: whether the slot records the category. */
  uint32_t enabled;
  uint32_t index;
  PyObject* name;
  PyObject* description;
  PyObject* tags; /* A tuple of str. */
  PyObject* weakrefs;
} CategoryObject;
