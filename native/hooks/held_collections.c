#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/held_collections.h"
#include "hooks/python_layout.h"

static struct {
  PyObject *get_threshold, *set_threshold;
  int holders;
  long threshold; /* What the last holder sets. */
} held;

bool st_collections_can_be_held(void) {
  if (held.set_threshold)
    return true;
  PyObject* module = PyImport_ImportModule("gc");
  if (module) {
    Py_XSETREF(held.get_threshold,
               PyObject_GetAttrString(module, "get_threshold"));
    held.set_threshold = PyObject_GetAttrString(module, "set_threshold");
  }
  Py_XDECREF(module);
  PyErr_Clear();
  return held.get_threshold && held.set_threshold;
}

static long threshold(void) {
  PyObject* all = PyObject_CallNoArgs(held.get_threshold);
  long first = all ? PyLong_AsLong(PyTuple_GET_ITEM(all, 0)) : 0;
  Py_XDECREF(all);
  PyErr_Clear();
  return first;
}

static void set_threshold(long value) {
  Py_XDECREF(PyObject_CallFunction(held.set_threshold, "l", value));
  PyErr_Clear();
}

void st_hold_collections(void) {
  /* To ask for the threshold makes a tuple: on 3.11 that may collect. */
  bool was_enabled = PyGC_Disable();
  if (held.holders++ == 0) {
    held.threshold = threshold();
    set_threshold(0);
  }
  st_python_forget_due_collection();
  if (was_enabled)
    PyGC_Enable();
}

void st_release_collections(void) {
  if (--held.holders == 0 && held.threshold > 0 && threshold() == 0)
    set_threshold(held.threshold);
}
