/* Conversion between Python values and protobuf's scalar types. */
#pragma once

#include "bind/common/small_int.h"

enum value_kind {
  VALUE_INT32,
  VALUE_INT64,
  VALUE_UINT32,
  VALUE_UINT64,
  VALUE_ENUM,
  VALUE_SINT32,
  VALUE_SINT64,
  VALUE_BOOL,
  VALUE_FIXED32,
  VALUE_FIXED64,
  VALUE_SFIXED32,
  VALUE_SFIXED64,
  VALUE_FLOAT,
  VALUE_DOUBLE,
  VALUE_STRING,
  VALUE_BYTES,
  VALUE_MESSAGE,
  VALUE_KINDS
};

/* Returns the kind of scalar with this name in .proto files.  Returns
 * VALUE_KINDS if there is no such kind. */
enum value_kind value_kind_named(const char* name);

/* Returns the wire type of an unpacked value of this kind. */
uint32_t value_wire_type(enum value_kind kind);

/* Returns the largest value that an integer kind allows. */
uint64_t value_max(enum value_kind kind);

/* Converts a Python number to its bits on the wire: a varint, or the low bytes
 * of a fixed value.  Returns false, without an exception, if the value is out
 * of range or does not have the exact Python type of the kind.  Runs no Python
 * code. */
bool value_to_bits(enum value_kind kind, PyObject* value, uint64_t* bits);

/* Converts bits from the wire to a Python number.  An integer is cut to the
 * width of its kind. */
PyObject* value_from_bits(enum value_kind kind, uint64_t bits);

/* Converts bytes to a str.  Bytes that are not UTF-8 become surrogate
 * escapes. */
PyObject* value_string(const uint8_t* data, size_t size);
