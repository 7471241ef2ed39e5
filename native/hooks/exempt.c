/* CPython declares the headers of objects only for sources that define this
 * macro. */
#define Py_BUILD_CORE 1
#include "hooks/exempt.h"

#include <internal/pycore_gc.h>

#ifndef Py_GIL_DISABLED

static PyGC_Head exempt;

static void link_to(PyGC_Head* left, PyGC_Head* right) {
  _PyGCHead_SET_NEXT(left, right);
  _PyGCHead_SET_PREV(right, left);
}

/* Returns gc.get_stats(): a new list, with the number of collections. */
static PyObject* collections(void) {
  PyObject* gc = PyImport_ImportModule("gc");
  PyObject* stats = gc ? PyObject_CallMethod(gc, "get_stats", NULL) : NULL;
  Py_XDECREF(gc);
  return stats;
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
  PyObject* last = collections();
  int none_ran = last ? PyObject_RichCompareBool(first, last, Py_EQ) : -1;
  if (none_ran > 0)
    move_between(_Py_AS_GC(first), _Py_AS_GC(last));
  Py_XDECREF(last);
  return none_ran < 0 ? NULL : PyBool_FromLong(none_ran);
}

#else

PyObject* st_exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  (void)first;
  Py_RETURN_FALSE;
}

#endif
