#include "bind/common/errors.h"

#include <stdarg.h>

#include "bind/common/python.h"

static void set_error(const char* name, const char* format, va_list arguments) {
  PyObject* errors = PyImport_ImportModule("stretto.base.errors");
  PyObject* type = errors ? PyObject_GetAttrString(errors, name) : NULL;
  if (type)
    PyErr_FormatV(type, format, arguments);
  Py_XDECREF(type);
  Py_XDECREF(errors);
}

void set_decode_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_error("DecodeError", format, arguments);
  va_end(arguments);
}

void set_protocol_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_error("LocalProtocolError", format, arguments);
  va_end(arguments);
}
