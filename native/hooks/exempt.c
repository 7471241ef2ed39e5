/* CPython declares the headers of objects only for sources that define this
 * macro. */
#define Py_BUILD_CORE 1
#include "hooks/exempt.h"

#include <internal/pycore_gc.h>
#include <stdbool.h>

#ifndef Py_GIL_DISABLED

static PyGC_Head exempt;

static void link_to(PyGC_Head* left, PyGC_Head* right) {
  _PyGCHead_SET_NEXT(left, right);
  _PyGCHead_SET_PREV(right, left);
}

/* Whether `last` follows `first` in the same list. */
static bool is_before(PyGC_Head* first, PyGC_Head* last) {
  PyGC_Head* node = _PyGCHead_NEXT(first);
  while (node != first && node != last)
    node = _PyGCHead_NEXT(node);
  return node == last;
}

/* Moves what is between two nodes of a list to the end of `exempt`. */
static void move_between(PyGC_Head* first, PyGC_Head* last) {
  PyGC_Head *begin = _PyGCHead_NEXT(first), *end = _PyGCHead_PREV(last);
  if (begin == last)
    return;
  link_to(first, last);
  if (!_PyGCHead_NEXT(&exempt))
    link_to(&exempt, &exempt);
  link_to(_PyGCHead_PREV(&exempt), begin);
  link_to(end, &exempt);
}

PyObject* st_exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  PyObject* last = PyList_New(0);
  if (!last)
    return NULL;
  bool found = PyObject_GC_IsTracked(first) &&
               is_before(_Py_AS_GC(first), _Py_AS_GC(last));
  if (found)
    move_between(_Py_AS_GC(first), _Py_AS_GC(last));
  Py_DECREF(last);
  return PyBool_FromLong(found);
}

#else

PyObject* st_exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  (void)first;
  Py_RETURN_FALSE;
}

#endif
