/* Python values as protobuf's scalars. */
#pragma once

#include "bind/common/python.h"

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

/* The kind of a name as in .proto files; VALUE_KINDS: there is none such. */
enum value_kind value_kind_named(const char* name);

/* The wire type of a kind that stands alone, not packed. */
uint32_t value_wire_type(enum value_kind kind);

/* The largest value of an integer kind. */
uint64_t value_max(enum value_kind kind);

/* A small int, at the price of a few instructions.  False: it may be an int
 * all the same, but a larger or a negative one. */
static inline bool value_small_int(PyObject* value, uint64_t* out) {
  const PyLongObject* number = (const PyLongObject*)value;
  if (!PyLong_CheckExact(value))
    return false;
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(number))
    return false;
  Py_ssize_t small = PyUnstable_Long_CompactValue(number);
#else
  if ((size_t)Py_SIZE(number) > 1)
    return false;
  Py_ssize_t small = Py_SIZE(number) ? (Py_ssize_t)number->ob_digit[0] : 0;
#endif
  *out = (uint64_t)small;
  return small >= 0;
}

/* The bits of a number: what stands on the wire, as a varint or in the low
 * bytes.  False, without an exception: it isn't of the exact Python type for
 * the kind, or out of range.  Runs no Python code. */
bool value_to_bits(enum value_kind kind, PyObject* value, uint64_t* bits);

/* The number that bits from the wire stand for; integers are cut to their
 * width. */
PyObject* value_from_bits(enum value_kind kind, uint64_t bits);

/* A str; bytes that aren't UTF-8 become surrogate escapes. */
PyObject* value_string(const uint8_t* data, size_t size);
