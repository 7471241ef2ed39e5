/* request_key(): the flow key in the headers or metadata of a request.
 */
#ifndef STRETTO_BIND_DATA_PATH_REQUEST_KEY_H_
#define STRETTO_BIND_DATA_PATH_REQUEST_KEY_H_

#include "bind/common/python.h"

/* Adds the type or functions to the module.  -1: an exception is set. */
int st_bind_add_request_key(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_REQUEST_KEY_H_ */
