#include "bind/common/text.h"

const char* st_bind_escaped_utf8(PyObject* string, Py_ssize_t* size,
                                 PyObject** release) {
  PyErr_Clear(); /* Clears the error that the strict UTF-8 encoder has set. */
  *release = PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace");
  if (!*release) {
    PyErr_Clear();
    *size = 0;
    return NULL;
  }
  *size = PyBytes_Size(*release);
  return PyBytes_AsString(*release);
}

size_t cut_utf8(const char* data, size_t size) {
  while (size > 0 && ((uint8_t)data[size] & 0xC0) == 0x80)
    size--;
  return size;
}
