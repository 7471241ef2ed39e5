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

static int is_equal(PyObject* a, PyObject* b) {
  return PyObject_RichCompareBool(a, b, Py_EQ);
}

PyObject* st_exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  PyObject* last = collections();
  int none_ran = last ? is_equal(first, last) : -1;
  if (none_ran > 0)
    move_between(_Py_AS_GC(first), _Py_AS_GC(last));
  Py_XDECREF(last);
  return none_ran < 0 ? NULL : PyBool_FromLong(none_ran);
}

PyObject* st_exempt_between(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *first, *last, *now = NULL;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &first, &PyList_Type,
                        &last) ||
      !(now = collections()))
    return NULL;
  int none_ran = is_equal(first, now);
  if (none_ran > 0)
    none_ran = is_equal(last, now);
  if (none_ran > 0)
    move_between(_Py_AS_GC(first), _Py_AS_GC(last));
  Py_DECREF(now);
  return none_ran < 0 ? NULL : PyBool_FromLong(none_ran);
}

/* Whether the object defines something for good: not a frame, an iterator or an
 * instance, whose end may matter. */
static bool is_definition(PyObject* o) {
  return PyFunction_Check(o) || PyMethod_Check(o) || PyCFunction_Check(o) ||
         PyModule_Check(o) || PyType_Check(o) || PyCell_Check(o);
}

static bool is_container(PyObject* o) {
  return PyDict_CheckExact(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o);
}

static void make_immortal(PyObject* o) {
#if PY_VERSION_HEX < 0x030C0000
  Py_INCREF(o);
#else
  Py_SET_REFCNT(o, Py_REFCNT(Py_None));
#endif
}

/* The collector lists neither code objects nor most constants. */
static void keep_code(PyObject* function) {
  PyCodeObject* code = (PyCodeObject*)PyFunction_GET_CODE(function);
  make_immortal((PyObject*)code);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++)
    make_immortal(PyTuple_GET_ITEM(code->co_consts, i));
}

PyObject* st_keep_exempt(PyObject* module, PyObject* containers) {
  (void)module;
  bool with_containers = PyObject_IsTrue(containers) > 0;
  PyGC_Head* header = _PyGCHead_NEXT(&exempt);
  for (; header && header != &exempt; header = _PyGCHead_NEXT(header)) {
    PyObject* o = (PyObject*)(header + 1);
    if (is_definition(o) || (with_containers && is_container(o)))
      make_immortal(o);
    if (PyFunction_Check(o))
      keep_code(o);
  }
  Py_RETURN_NONE;
}

#else

PyObject* st_exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  (void)first;
  Py_RETURN_FALSE;
}

PyObject* st_exempt_between(PyObject* module, PyObject* args) {
  (void)module;
  (void)args;
  Py_RETURN_FALSE;
}

PyObject* st_keep_exempt(PyObject* module, PyObject* containers) {
  (void)module;
  (void)containers;
  Py_RETURN_NONE;
}

#endif
