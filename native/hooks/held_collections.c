#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hooks/held_collections.h"

#include "hooks/python_layout.h"

/* The count of new objects; NULL if it is unknown. */
static int* count;

/* Whether the thresholds of the interpreter are those that gc.get_threshold()
 * returns: then the interpreter is like the one of our headers. */
static bool are_thresholds(PyObject* returned) {
  int found[ST_GENERATIONS], told[ST_GENERATIONS];
  st_python_thresholds(found);
  return PyArg_ParseTuple(returned, "iii", &told[0], &told[1], &told[2]) &&
         !memcmp(found, told, sizeof found);
}

void st_held_collections_init(void) {
  PyObject* module = PyImport_ImportModule("gc");
  PyObject* thresholds =
      module ? PyObject_CallMethod(module, "get_threshold", NULL) : NULL;
  if (thresholds && are_thresholds(thresholds))
    count = st_python_object_count();
  Py_XDECREF(thresholds);
  Py_XDECREF(module);
  PyErr_Clear();
}

int st_hold_collections(void) {
  st_python_forget_due_collection();
  return count ? *count -= ST_HELD_OBJECTS : 0;
}

void st_release_collections(int held) {
  bool was_set_to_0 = held < 0 && count && *count >= 0;
  if (count && !was_set_to_0)
    *count += ST_HELD_OBJECTS;
}
