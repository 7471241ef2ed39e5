/* The Python functions of the heap profiler. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Adds the functions to the module.  Returns -1 with an exception set. */
int st_add_heap(PyObject* module);
