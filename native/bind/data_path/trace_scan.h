/* tokenize() and scan_trace(): a pass over the packets of a whole trace.
 *
 * Both take any contiguous bytes, copy nothing, and stop at the first packet
 * that is incomplete or malformed; the result says at which byte.
 */
#ifndef STRETTO_BIND_DATA_PATH_TRACE_SCAN_H_
#define STRETTO_BIND_DATA_PATH_TRACE_SCAN_H_

#include "bind/common/python.h"

/* Adds the functions to the module.  -1: an exception is set. */
int st_bind_add_trace_scan(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_TRACE_SCAN_H_ */
