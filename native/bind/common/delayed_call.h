/* A call of a Python function on a new thread, after a delay.
 *
 * There is at most one such call.  The child of a fork has none.
 */
#pragma once

#include "bind/common/python.h"

/* Calls the function after a delay in milliseconds, instead of an earlier
 * delayed call.  If no thread can be started, it is not called. */
void st_call_after(long ms, PyObject* function);

/* Cancels the call.  The thread is left if it still waits: to wake it and to
 * wait for its end takes longer than the end of the process. */
void st_drop_call(void);
