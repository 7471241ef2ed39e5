/* The clocks of the core as Python functions: boottime_ns() and read_tsc().
 */
#ifndef STRETTO_BIND_COMMON_CLOCK_H_
#define STRETTO_BIND_COMMON_CLOCK_H_

#include "bind/common/python.h"

/* Adds the functions to the module.  -1: an exception is set. */
int st_bind_add_clock(PyObject* module);

#endif /* STRETTO_BIND_COMMON_CLOCK_H_ */
