#include "bind/track_event/traced_calls.h"

#include "bind/track_event/category_object.h"
#include "bind/track_event/slice.h"

PyObject* category_call_traced(PyObject* self, PyObject* const* args,
                               Py_ssize_t count) {
  if (count != 3 || !PyFunction_Check(args[0]) || !PyTuple_Check(args[1]) ||
      !PyDict_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "_call_traced(function, args, kwargs)");
    return NULL;
  }
  PyObject* code = PyFunction_GET_CODE(args[0]);
  struct slice_entry entry = slice_begin_code((CategoryObject*)self, code);
  PyObject* result =
      PyDict_GET_SIZE(args[2])
          ? PyObject_Call(args[0], args[1], args[2])
          : PyObject_Vectorcall(args[0], &PyTuple_GET_ITEM(args[1], 0),
                                (size_t)PyTuple_GET_SIZE(args[1]), NULL);
  slice_end_code(&entry, code);
  return result;
}

#if PY_VERSION_HEX < 0x030C0000

PyObject* category_trace_calls(PyObject* Py_UNUSED(self), PyObject* wrapper) {
  return Py_NewRef(wrapper);
}

#else

enum {
  /* The closure cells of the wrapper, in the alphabetical order of its free
   * variables. */
  CELL_CATEGORY,
  CELL_FUNCTION,
  CELLS,
  /* The largest number of nested native calls.  Each of them takes a part of
   * the C stack. */
  MAX_DEPTH = 50,
};

static _Thread_local int depth;
static PyTypeObject* category_type;
/* The original vectorcall function of Python functions. */
static vectorcallfunc python_call;

static PyObject* cell_content(PyObject* wrapper, int index) {
  PyObject* closure = PyFunction_GET_CLOSURE(wrapper);
  if (!closure || PyTuple_GET_SIZE(closure) != CELLS)
    return NULL;
  return PyCell_GET(PyTuple_GET_ITEM(closure, index));
}

static bool are_cells(PyObject* category, PyObject* function) {
  return category && Py_TYPE(category) == category_type && function &&
         PyFunction_Check(function);
}

/* Makes this call, and all later calls of the wrapper, with the wrapper's
 * Python body, which takes no room on the C stack. */
RARE static PyObject* call_in_python(PyObject* wrapper, PyObject* const* args,
                                     size_t count, PyObject* kwnames) {
  PyFunction_SetVectorcall((PyFunctionObject*)wrapper, python_call);
  return python_call(wrapper, args, count, kwnames);
}

static PyObject* call_natively(PyObject* wrapper, PyObject* const* args,
                               size_t count, PyObject* kwnames) {
  PyObject* category = cell_content(wrapper, CELL_CATEGORY);
  PyObject* function = cell_content(wrapper, CELL_FUNCTION);
  if (UNLIKELY(depth == MAX_DEPTH || !are_cells(category, function)))
    return call_in_python(wrapper, args, count, kwnames);
  PyObject* code = PyFunction_GET_CODE(function);
  Py_INCREF(function); /* Python code that runs here may change the cell. */
  depth++;
  struct slice_entry entry = slice_begin_code((CategoryObject*)category, code);
  PyObject* result = PyObject_Vectorcall(function, args, count, kwnames);
  slice_end_code(&entry, code);
  depth--;
  Py_DECREF(function);
  return result;
}

PyObject* category_trace_calls(PyObject* self, PyObject* wrapper) {
  category_type = Py_TYPE(self);
  if (!PyFunction_Check(wrapper) ||
      cell_content(wrapper, CELL_CATEGORY) != self ||
      !are_cells(self, cell_content(wrapper, CELL_FUNCTION))) {
    PyErr_SetString(PyExc_TypeError,
                    "_trace_calls() takes a wrapper made by @traced");
    return NULL;
  }
  PyFunctionObject* function = (PyFunctionObject*)wrapper;
  if (function->vectorcall != call_natively) {
    python_call = function->vectorcall;
    PyFunction_SetVectorcall(function, call_natively);
  }
  return Py_NewRef(wrapper);
}

#endif
