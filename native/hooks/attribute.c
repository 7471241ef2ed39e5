#include "hooks/attribute.h"

#include <stdbool.h>

static bool find(struct st_attribute* a, PyTypeObject* type) {
  if (!a->key && !(a->key = PyUnicode_InternFromString(a->name)))
    return false;
  PyObject* found = PyObject_GetAttr((PyObject*)type, a->key);
  if (!found)
    return false;
  PyObject *old = a->descriptor, *old_type = (PyObject*)a->type;
  a->descriptor = found;
  a->type = (PyTypeObject*)Py_NewRef(type);
  Py_XDECREF(old);
  Py_XDECREF(old_type);
  return true;
}

PyObject* st_attribute_of(struct st_attribute* a, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (a->type != type && !find(a, type))
    return NULL;
  descrgetfunc get = Py_TYPE(a->descriptor)->tp_descr_get;
  return get ? get(a->descriptor, object, (PyObject*)type) : NULL;
}
