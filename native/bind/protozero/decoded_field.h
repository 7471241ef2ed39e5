/* The Python type DecodedField: one encoded field of a message.
 *
 * A delimited field copies no bytes: it keeps a reference to the object that
 * owns the bytes of the message.  Up to 256 freed objects are kept for reuse.
 */
#pragma once

#include "bind/protozero/byte_range.h"
#include "core/decoder.h"

/* Returns a new DecodedField for a field of the message whose bytes are
 * `range`.  Returns NULL with an exception set on failure. */
PyObject* decoded_field_new(const struct byte_range* range,
                            const struct st_field* field);
