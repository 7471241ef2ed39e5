/* Names of C functions: `time.sleep`, `list.append`.
 *
 * A name is made once per method definition, which a function and all methods
 * bound from it share.  An extension may make definitions at run time and free
 * them, and their addresses may be used again: the text of the name is compared
 * as well.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Whether calls of this object are traced as C functions. */
bool st_is_c_function(PyObject* callable);
/* A borrowed str, valid until st_c_names_clear.  NULL: no memory. */
PyObject* st_c_function_name(PyObject* callable);
void st_c_names_clear(void);
