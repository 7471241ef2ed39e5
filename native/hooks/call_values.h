/* Call values: the arguments and the result of a call, as arguments of its
 * slice (--log-args, --log-result).
 *
 * st_hooks.arguments_of and st_hooks.result_of, two Python functions, make a
 * dict of plain values.  They call no method of the program's objects.  Needs
 * CPython 3.12, which reads the variables of a frame without a copy of them.
 */
#pragma once

#include "hooks/tracer.h"

/* Returns a new dict for the call of this code that begins on the calling
 * thread.  Returns NULL without an exception if there is none. */
PyObject* st_call_arguments(PyObject* code);
/* Returns a new dict for a returned value, or NULL as above. */
PyObject* st_call_result(PyObject* code, PyObject* value);
