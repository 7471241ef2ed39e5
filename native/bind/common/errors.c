#include "bind/common/errors.h"

#include <stdarg.h>

#include "bind/common/python.h"

void st_set_error(const char* name, const char* format, ...) {
  PyObject* errors = PyImport_ImportModule("stretto.base.errors");
  PyObject* type = errors ? PyObject_GetAttrString(errors, name) : NULL;
  va_list arguments;
  va_start(arguments, format);
  if (type)
    PyErr_FormatV(type, format, arguments);
  va_end(arguments);
  Py_XDECREF(type);
  Py_XDECREF(errors);
}
