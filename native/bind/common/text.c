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

bool st_bind_text(PyObject* object, const char** text, size_t* size) {
  Py_ssize_t length = 0;
  *text =
      PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : NULL;
  *size = (size_t)length;
  if (!*text)
    PyErr_Clear();
  return *text != NULL;
}

size_t cut_utf8(const char* data, size_t size) {
  while (size > 0 && ((uint8_t)data[size] & 0xC0) == 0x80)
    size--;
  return size;
}
