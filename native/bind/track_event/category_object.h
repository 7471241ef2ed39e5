/* The object of the Python type Category (category.h), as the emitters see it.
 *
 * One object per name, which lives as long as the process: pointers to it may
 * be kept without a reference.  `enabled` has a bit per slot of instances.h; a
 * disabled event reads nothing else.  Changed with the GIL.
 */
#pragma once

#include "bind/common/python.h"

enum { MAX_CATEGORIES = 65535 };

typedef struct {
  PyObject_HEAD
  uint32_t enabled; /* bit per slot */
  uint32_t index;
  PyObject* name;
  PyObject* description;
  PyObject* tags; /* tuple of str */
  PyObject* weakrefs;
} CategoryObject;
