/* Text of Python strings as UTF-8.
 *
 * CPython keeps the UTF-8 form of a str with the str, so the usual case
 * neither copies nor allocates after the first call.
 */
#pragma once

#include "bind/common/python.h"

/* The UTF-8 of a str that has lone surrogates: they are written as escapes. */
const char* st_bind_escaped_utf8(PyObject* string, Py_ssize_t* size,
                                 PyObject** release);

/* The UTF-8 of any str.  Valid while `string` and *release live; *release is a
 * new reference or NULL.  NULL without an exception: no memory. */
static inline const char* utf8_of(PyObject* string, Py_ssize_t* size,
                                  PyObject** release) {
  *release = NULL;
  const char* data = PyUnicode_AsUTF8AndSize(string, size);
  return LIKELY(data) ? data : st_bind_escaped_utf8(string, size, release);
}

/* The largest size up to `size` at which a character of `data` begins. */
size_t cut_utf8(const char* data, size_t size);
