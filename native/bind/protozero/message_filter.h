/* The Python type MessageFilter: removes fields of messages by a bytecode.
 *
 * Large messages are filtered without the GIL.
 */
#ifndef STRETTO_BIND_PROTOZERO_MESSAGE_FILTER_H_
#define STRETTO_BIND_PROTOZERO_MESSAGE_FILTER_H_

#include "bind/common/python.h"

/* Adds the type to the module.  -1: an exception is set. */
int st_bind_add_message_filter(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_MESSAGE_FILTER_H_ */
