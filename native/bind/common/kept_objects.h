/* Objects that are kept until the process ends. */
#pragma once

#include "bind/common/python.h"

/* Keeps the modules of Stretto and those with other names, and hides them: at
 * its end, the interpreter frees only what sys.modules has, and that takes a
 * millisecond.  Returns whether it succeeded; if not, an exception is set.
 *
 * Args:
 *   others: a frozenset of names. */
bool st_hide_modules(PyObject* others);
