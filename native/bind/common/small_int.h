/* Small Python ints, which are converted without a call of CPython. */
#pragma once

#include "bind/common/python.h"

/* Converts a small non-negative Python int in a few instructions.  Returns
 * false for every other value, including larger and negative ints. */
static inline bool small_int(PyObject* value, uint64_t* out) {
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
