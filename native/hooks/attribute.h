/* Attribute: reads an attribute of many objects of one type faster than
 * PyObject_GetAttr().
 *
 * It is for attributes that the type defines, such as slots, getters and
 * methods; it does not look into the objects' dicts.  The type's descriptor is
 * kept until an object of another type is read.  The GIL guards it.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

struct st_attribute {
  const char* name;
  PyObject *key, *descriptor;
  PyTypeObject* type; /* The type of the descriptor; a strong reference. */
};

/* Returns a new reference to the object's attribute.  Returns NULL, perhaps with
 * an exception set, if the object's type does not define it. */
PyObject* st_attribute_of(struct st_attribute* a, PyObject* object);
