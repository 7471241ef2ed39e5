/* Names of C functions, such as `time.sleep` and `list.append`.
 *
 * A name is made once per method definition (PyMethodDef), which a function
 * shares with all methods bound from it.  An extension may allocate definitions
 * at run time and free them, and their addresses may be reused, so the address
 * of the name's text is compared as well.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Returns whether calls of this callable are traced as calls of a C
 * function. */
bool st_is_c_function(PyObject* callable);
/* Returns the name of a C function as a borrowed str, which is valid until
 * st_c_names_clear.  Returns NULL when out of memory. */
PyObject* st_c_function_name(PyObject* callable);
void st_c_names_clear(void);
