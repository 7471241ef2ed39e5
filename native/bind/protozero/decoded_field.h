/* The Python type DecodedField: one field of a message, as encoded.
 *
 * A delimited field shares the owner of its message's bytes.  Up to 256 freed
 * objects are kept for reuse.
 */
#pragma once

#include "bind/protozero/byte_range.h"
#include "core/decoder.h"

/* A field of the range.  NULL: an exception is set. */
PyObject* decoded_field_new(const struct byte_range* range,
                            const struct st_field* field);
