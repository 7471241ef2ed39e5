/* Text of Python strings as UTF-8.
 *
 * CPython keeps the UTF-8 form of a str with the str, so the usual case
 * neither copies nor allocates after the first call.
 */
#pragma once

#include "bind/common/python.h"

/* Encodes a str with lone surrogates as UTF-8.  An escape sequence replaces
 * each surrogate. */
const char* st_bind_escaped_utf8(PyObject* string, Py_ssize_t* size,
                                 PyObject** release);

/* Returns the UTF-8 text of a str, without a call if the str is ASCII.  Returns
 * NULL with an exception set if it has lone surrogates, or when out of
 * memory. */
static inline const char* strict_utf8(PyObject* string, Py_ssize_t* size) {
  if (!PyUnicode_IS_COMPACT_ASCII(string))
    return PyUnicode_AsUTF8AndSize(string, size);
  *size = PyUnicode_GET_LENGTH(string);
  return PyUnicode_DATA(string);
}

/* Returns the UTF-8 text of any str.  The text is valid while `string` and
 * *release are alive; *release becomes a new reference or NULL.  Returns NULL,
 * without an exception, when out of memory. */
static inline const char* utf8_of(PyObject* string, Py_ssize_t* size,
                                  PyObject** release) {
  *release = NULL;
  const char* data = strict_utf8(string, size);
  return LIKELY(data) ? data : st_bind_escaped_utf8(string, size, release);
}

/* Finds the UTF-8 text of a str.  Returns false, without an exception, if the
 * object is no str or has lone surrogates. */
bool st_bind_text(PyObject* object, const char** text, size_t* size);

/* Returns the largest size, at most `size`, at which UTF-8 `data` can be cut
 * without splitting a character. */
size_t cut_utf8(const char* data, size_t size);
