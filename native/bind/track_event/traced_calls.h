/* Calls of functions that `@traced` decorates.
 *
 * The decorator makes a Python function, whose body opens a slice and calls the
 * decorated function.  From 3.12 on, Category.trace_calls() adds a native
 * vectorcall to the function that was made.  The vectorcall does the same
 * faster.  In all other respects the function is a Python function.  CPython
 * 3.11 does not use the vectorcall of Python functions; there the body is one
 * call of Category.call_traced().
 */
#pragma once

#include "bind/common/python.h"

/* trace_calls(wrapper): makes a wrapper record its calls in native code.
 * Returns the wrapper. */
PyObject* category_trace_calls(PyObject* category, PyObject* wrapper);
/* call_traced(function, args, kwargs): calls a Python function in a slice. */
PyObject* category_call_traced(PyObject* category, PyObject* const* args,
                               Py_ssize_t count);
