/* The Python types IndexedMessage, the base of generated decoders, and
 * DecoderField, an attribute of them.
 *
 * Making a decoder passes over the message once and notes where each field
 * lies; a value is made when its attribute is read.  Messages have few fields:
 * a search of the notes from their end finds the last value fastest.
 *
 * Generated classes are final and share one free list, as those of
 * message_writer_class.h.
 */
#ifndef STRETTO_BIND_PROTOZERO_TYPED_DECODER_H_
#define STRETTO_BIND_PROTOZERO_TYPED_DECODER_H_

#include "bind/common/python.h"

/* Adds the types to the module.  -1: an exception is set. */
int st_bind_add_typed_decoder(PyObject* module);

#endif /* STRETTO_BIND_PROTOZERO_TYPED_DECODER_H_ */
