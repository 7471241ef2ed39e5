/* The object of the Python type Decoder, and how one is made.
 *
 * A decoder makes DecodedFields, and a DecodedField or a generated decoder
 * makes decoders for nested messages.  Both therefore use this unit, and
 * neither uses the other.  The type itself is in message_decoder.h.
 */
#pragma once

#include "bind/protozero/byte_range.h"
#include "core/decoder.h"

struct decoder_object {
  PyObject_HEAD
  struct byte_range range;
  struct st_decoder decoder;
};

/* Set when the type is added to the module. */
extern PyTypeObject* st_decoder_type;

/* A decoder of the range, which it takes over, also on failure.  NULL: an
 * exception is set. */
PyObject* decoder_new_for(struct byte_range range);
