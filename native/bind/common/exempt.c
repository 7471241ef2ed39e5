/* Takes objects out of the lists of CPython's garbage collector.
 *
 * The modules of a recorder's target stay until its process ends, so no
 * collection has to visit them.  That matters most in forked children, where
 * each visit writes to an object's header and so copies its page.  `gc.freeze`
 * would exempt the program's objects, too: `__main__` exists already.  If it is
 * not visited, the interpreter's last collection calls no `__del__` of what the
 * program has left there.
 *
 *     generation 0 <-> older objects <-> first <-> ours ... <-> (new list)
 *                                             |________|
 *     exempt       <->  ours ...              goes here
 *
 * New objects are appended to the list of generation 0.  So while the collector
 * is disabled, the objects that were created since `first` follow it there.
 * The list that they are moved to belongs to no generation; an object that is
 * freed leaves it as it would leave any other.
 */
/* CPython declares the headers of objects only for sources that define this
 * macro. */
#define Py_BUILD_CORE 1
#include "bind/common/python.h"

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

/* Exempts the objects that were created after `first`, a list that
 * gc.get_stats() has returned.  The collector must have been disabled since,
 * without gc.freeze(), and no other thread may have run.  Returns whether it has
 * exempted them: not if there was a collection, which the list shows. */
static PyObject* exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  PyObject* last = collections();
  int none_ran = last ? is_equal(first, last) : -1;
  if (none_ran > 0)
    move_between(_Py_AS_GC(first), _Py_AS_GC(last));
  Py_XDECREF(last);
  return none_ran < 0 ? NULL : PyBool_FromLong(none_ran);
}

/* The same for the objects between two such lists.  Both must still exist.  The
 * collector may be enabled by now, and gc.freeze() and gc.unfreeze() may have
 * been called, as they keep the order of objects. */
static PyObject* exempt_between(PyObject* module, PyObject* args) {
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

/* From CPython 3.12 on nothing counts references to immortal objects.  So a
 * forked child that uses them copies no page for it, and the end of the process
 * frees none of them.  A container may hold what has to be freed, such as an open
 * file: keep containers only if none does. */
static PyObject* keep_exempt(PyObject* module, PyObject* containers) {
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

static PyObject* exempt_since(PyObject* module, PyObject* first) {
  (void)module;
  (void)first;
  Py_RETURN_FALSE;
}

static PyObject* exempt_between(PyObject* module, PyObject* args) {
  (void)module;
  (void)args;
  Py_RETURN_FALSE;
}

static PyObject* keep_exempt(PyObject* module, PyObject* containers) {
  (void)module;
  (void)containers;
  Py_RETURN_NONE;
}

#endif

static PyMethodDef kFunctions[] = {
    {"exempt_since", exempt_since, METH_O, NULL},
    {"exempt_between", exempt_between, METH_VARARGS, NULL},
    {"keep_exempt", keep_exempt, METH_O, NULL},
    {0}};

ST_BIND_PART(exempt) {
  return PyModule_AddFunctions(module, kFunctions);
}
