#include "bind/protozero/message_value.h"

#include <math.h>

#include "core/wire.h"

static const struct {
  const char* name;
  uint32_t wire_type;
  int64_t min; /* The smallest value that an integer kind allows. */
  uint64_t max;
} kKinds[VALUE_KINDS] = {
    [VALUE_INT32] = {"int32", ST_WIRE_VARINT, INT32_MIN, INT32_MAX},
    [VALUE_INT64] = {"int64", ST_WIRE_VARINT, INT64_MIN, INT64_MAX},
    [VALUE_UINT32] = {"uint32", ST_WIRE_VARINT, 0, UINT32_MAX},
    [VALUE_UINT64] = {"uint64", ST_WIRE_VARINT, 0, UINT64_MAX},
    [VALUE_ENUM] = {"enum", ST_WIRE_VARINT, INT32_MIN, INT32_MAX},
    [VALUE_SINT32] = {"sint32", ST_WIRE_VARINT, INT32_MIN, INT32_MAX},
    [VALUE_SINT64] = {"sint64", ST_WIRE_VARINT, INT64_MIN, INT64_MAX},
    [VALUE_BOOL] = {"bool", ST_WIRE_VARINT, 0, 1},
    [VALUE_FIXED32] = {"fixed32", ST_WIRE_FIXED32, 0, UINT32_MAX},
    [VALUE_FIXED64] = {"fixed64", ST_WIRE_FIXED64, 0, UINT64_MAX},
    [VALUE_SFIXED32] = {"sfixed32", ST_WIRE_FIXED32, INT32_MIN, INT32_MAX},
    [VALUE_SFIXED64] = {"sfixed64", ST_WIRE_FIXED64, INT64_MIN, INT64_MAX},
    [VALUE_FLOAT] = {"float", ST_WIRE_FIXED32, 0, 0},
    [VALUE_DOUBLE] = {"double", ST_WIRE_FIXED64, 0, 0},
    [VALUE_STRING] = {"string", ST_WIRE_DELIMITED, 0, 0},
    [VALUE_BYTES] = {"bytes", ST_WIRE_DELIMITED, 0, 0},
    [VALUE_MESSAGE] = {"message", ST_WIRE_DELIMITED, 0, 0},
};

enum value_kind value_kind_named(const char* name) {
  int kind = 0;
  while (kind < VALUE_KINDS && strcmp(kKinds[kind].name, name) != 0)
    kind++;
  return (enum value_kind)kind;
}

uint32_t value_wire_type(enum value_kind kind) {
  return kKinds[kind].wire_type;
}

uint64_t value_max(enum value_kind kind) {
  return kKinds[kind].max;
}

static bool large_to_bits(enum value_kind kind, PyObject* value, int overflow,
                          uint64_t* bits) {
  if (overflow < 0 || kKinds[kind].max != UINT64_MAX)
    return false;
  *bits = PyLong_AsUnsignedLongLong(value);
  if (*bits != UINT64_MAX || !PyErr_Occurred())
    return true;
  PyErr_Clear();
  return false;
}

static bool integer_to_bits(enum value_kind kind, PyObject* value,
                            uint64_t* bits) {
  if (!PyLong_CheckExact(value))
    return false;
  int overflow;
  int64_t n = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow)
    return large_to_bits(kind, value, overflow, bits);
  if (n < kKinds[kind].min || (n > 0 && (uint64_t)n > kKinds[kind].max))
    return false;
  bool is_zigzag = kind == VALUE_SINT32 || kind == VALUE_SINT64;
  *bits = is_zigzag ? st_zigzag(n) : (uint64_t)n;
  return true;
}

static bool float_to_bits(double value, uint64_t* bits) {
  float single = (float)value;
  if (isinf(single) && !isinf(value))
    return false;
  uint32_t image;
  memcpy(&image, &single, sizeof image);
  *bits = image;
  return true;
}

bool value_to_bits(enum value_kind kind, PyObject* value, uint64_t* bits) {
  if (kind == VALUE_BOOL) {
    *bits = value == Py_True;
    return value == Py_True || value == Py_False;
  }
  if (kind != VALUE_FLOAT && kind != VALUE_DOUBLE)
    return integer_to_bits(kind, value, bits);
  if (!PyFloat_CheckExact(value))
    return false;
  double number = PyFloat_AS_DOUBLE(value);
  if (kind == VALUE_FLOAT)
    return float_to_bits(number, bits);
  memcpy(bits, &number, sizeof number);
  return true;
}

static PyObject* double_from_bits(uint64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return PyFloat_FromDouble(number);
}

static PyObject* float_from_bits(uint64_t bits) {
  uint32_t image = (uint32_t)bits;
  float number;
  memcpy(&number, &image, sizeof number);
  return PyFloat_FromDouble((double)number);
}

static int64_t unzigzag(uint64_t v) {
  return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

PyObject* value_from_bits(enum value_kind kind, uint64_t bits) {
  switch (kind) {
    case VALUE_INT32:
    case VALUE_ENUM:
    case VALUE_SFIXED32:
      return PyLong_FromLong((int32_t)bits);
    case VALUE_INT64:
    case VALUE_SFIXED64:
      return PyLong_FromLongLong((int64_t)bits);
    case VALUE_UINT32:
    case VALUE_FIXED32:
      return PyLong_FromUnsignedLong((uint32_t)bits);
    case VALUE_SINT32:
      return PyLong_FromLongLong(unzigzag((uint32_t)bits));
    case VALUE_SINT64:
      return PyLong_FromLongLong(unzigzag(bits));
    case VALUE_BOOL:
      return PyBool_FromLong(bits != 0);
    case VALUE_FLOAT:
      return float_from_bits(bits);
    case VALUE_DOUBLE:
      return double_from_bits(bits);
    default:
      return PyLong_FromUnsignedLongLong(bits);
  }
}

PyObject* value_string(const uint8_t* data, size_t size) {
  return PyUnicode_DecodeUTF8((const char*)data, (Py_ssize_t)size,
                              "surrogateescape");
}
