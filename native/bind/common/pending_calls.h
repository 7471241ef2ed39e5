/* add_pending_call(): makes the main thread call a function at its next safe
 * point, from any thread.  CPython bounds the number of pending calls.
 */
#ifndef STRETTO_BIND_COMMON_PENDING_CALLS_H_
#define STRETTO_BIND_COMMON_PENDING_CALLS_H_

#include "bind/common/python.h"

/* Adds the functions to the module.  -1: an exception is set. */
int st_bind_add_pending_calls(PyObject* module);

#endif /* STRETTO_BIND_COMMON_PENDING_CALLS_H_ */
