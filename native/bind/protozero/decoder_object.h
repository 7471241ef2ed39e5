/* The struct of the Python type Decoder, and its constructor for C.
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

/* The Python type Decoder.  It is set when the module adds the type. */
extern PyTypeObject* st_decoder_type;

/* Returns a new decoder of the bytes in a range.  Takes ownership of the range,
 * also on failure.  Returns NULL with an exception set on failure. */
PyObject* decoder_new_for(struct byte_range range);
