/* The Python type Decoder: iterates the fields of a message in place.
 *
 * A decoder keeps the bytes alive and copies none of them.
 */
#ifndef STRETTO_BIND_PROTOZERO_MESSAGE_DECODER_H_
#define STRETTO_BIND_PROTOZERO_MESSAGE_DECODER_H_

#include "bind/common/python.h"

/* Adds the type to the module.  -1: an exception is set. */
int st_bind_add_message_decoder(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_MESSAGE_DECODER_H_ */
