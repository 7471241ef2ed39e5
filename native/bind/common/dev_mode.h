/* Python's development mode.
 *
 * Wrong use of an event call or of a message is counted in a normal run, and
 * raises under `python -X dev`.
 */
#pragma once

#include "bind/common/python.h"

/* Returns 1 if Python runs in development mode (-X dev), else 0.  Returns -1
 * with an exception set on failure. */
int st_bind_dev_mode(void);

/* Sets a flag to the truth of a Python value.  Returns the old value of the
 * flag as a bool. */
PyObject* st_bind_set_flag(bool* flag, PyObject* value);
