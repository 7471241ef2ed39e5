/* Arguments of Python calls, converted to C values.
 *
 * A function describes its arguments once, in a constant signature; a call
 * then needs no format string and no dict:
 *
 *   static const char* const kNames[] = {"fd", "limit"};
 *   static const struct st_bind_signature kSignature = {"open", kNames, 1, 2};
 *   PyObject* in[2];
 *   if (!st_bind_arguments(&kSignature, args, count, kwnames, in)) return NULL;
 *
 * What is stored in `out` is borrowed from the call.  Each error names the
 * argument and says which values are allowed.
 */
#pragma once

#include "bind/common/python.h"

struct st_bind_signature {
  const char* function;
  const char* const* names; /* `max` of them */
  int required, max;
};

/* Sorts positional and keyword arguments of a FASTCALL function into
 * out[0..max); missing optional ones are NULL.  False: TypeError set. */
bool st_bind_arguments(const struct st_bind_signature* signature,
                       PyObject* const* args, Py_ssize_t count,
                       PyObject* kwnames, PyObject** out);

/* The same for tp_new. */
bool st_bind_new_arguments(const struct st_bind_signature* signature,
                           PyObject* args, PyObject* kwargs, PyObject** out);

/* An int from min to max, else ValueError that names the argument and the
 * range (TypeError if it is no int at all).  A NULL value leaves *out. */
bool st_bind_integer(PyObject* value, const char* name, int64_t min,
                     int64_t max, int64_t* out);

/* A uint16_t id from 1 up. */
bool st_bind_id16(PyObject* value, const char* name, uint16_t* out);

/* A buffer's id, or a reservation << 16. */
bool st_bind_target_buffer(PyObject* value, uint32_t* out);

/* An open descriptor; -1 stands for none and is allowed if `optional`. */
bool st_bind_fd(PyObject* value, const char* name, bool optional, int* out);

/* A contiguous bytes-like object, to be released by PyBuffer_Release. */
bool st_bind_bytes(PyObject* value, const char* name, Py_buffer* out);

/* A tuple, for PyArg_ParseTuple; else TypeError. */
static inline bool st_bind_is_row(PyObject* row) {
  if (PyTuple_Check(row))
    return true;
  PyErr_Format(PyExc_TypeError, "expected a tuple, not %R", row);
  return false;
}
