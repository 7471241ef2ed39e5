/* The Python type Readback: packets read out of trace buffers, as trace bytes.
 *
 * It keeps a reference to its BufferTable and reads under the table's reader
 * lock, without the GIL.
 */
#ifndef STRETTO_BIND_DATA_PATH_READBACK_H_
#define STRETTO_BIND_DATA_PATH_READBACK_H_

#include "bind/common/python.h"

/* Adds the type or functions to the module.  -1: an exception is set. */
int st_bind_add_readback(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_READBACK_H_ */
