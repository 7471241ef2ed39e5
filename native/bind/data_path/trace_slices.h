/* Functions that pack a trace into the slices of ReadBuffers replies, and
 * unpack them.
 */
#ifndef STRETTO_BIND_DATA_PATH_TRACE_SLICES_H_
#define STRETTO_BIND_DATA_PATH_TRACE_SLICES_H_

#include "bind/common/python.h"

/* Adds the type or functions to the module.  -1: an exception is set. */
int st_bind_add_trace_slices(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_TRACE_SLICES_H_ */
