/* Arguments of Python calls, converted to C values.
 *
 * A function describes its arguments once, in a constant signature; a call then
 * needs no format string and no dict:
 *
 *   ST_BIND_SIGNATURE(kSignature, 1, "open", "fd", "limit");
 *   PyObject* in[2];
 *   if (!st_bind_arguments(&kSignature, args, count, kwnames, in)) return NULL;
 *
 * The references stored in `in` are borrowed from the call.  Each error
 * message names the argument and its allowed values.
 */
#pragma once

#include "bind/common/python.h"

struct st_bind_signature {
  const char* function;
  int required, max;
  /* The names of the arguments.  The first `max` entries are used. */
  const char* names[9];
};

/* Defines a constant signature: its name, the number of required arguments, the
 * function's name, and the names of all arguments. */
#define ST_BIND_SIGNATURE(name, required, function, ...)    \
  static const struct st_bind_signature name = {            \
      function,                                             \
      required,                                             \
      sizeof((const char*[]){__VA_ARGS__}) / sizeof(char*), \
      {__VA_ARGS__}}

/* Stores the positional and keyword arguments of a FASTCALL function in
 * out[0..max), in the order of their names; missing optional arguments are
 * NULL. Returns false with TypeError set on failure. */
bool st_bind_arguments(const struct st_bind_signature* signature,
                       PyObject* const* args, Py_ssize_t count,
                       PyObject* kwnames, PyObject** out);

/* Stores the arguments of a tp_new slot in `out`, as st_bind_arguments does. */
bool st_bind_new_arguments(const struct st_bind_signature* signature,
                           PyObject* args, PyObject* kwargs, PyObject** out);

/* Converts an int from min to max.  A wrong value sets a ValueError that names
 * the argument and the range; another type sets TypeError.  If the value is
 * NULL, *out stays unchanged. */
bool st_bind_integer(PyObject* value, const char* name, int64_t min,
                     int64_t max, int64_t* out);

/* Converts an id from 1 to 65535.  Errors are those of
 * st_bind_integer. */
bool st_bind_id16(PyObject* value, const char* name, uint16_t* out);

/* Converts a target buffer: a buffer id, or a startup reservation (number <<
 * 16, see core/arbiter.h). */
bool st_bind_target_buffer(PyObject* value, uint32_t* out);

/* Converts a file descriptor.  If `optional`, the value -1 is allowed, which
 * means "no descriptor". */
bool st_bind_fd(PyObject* value, const char* name, bool optional, int* out);

/* Fills a Py_buffer from a contiguous bytes-like object.  The caller releases
 * it with PyBuffer_Release. */
bool st_bind_bytes(PyObject* value, const char* name, Py_buffer* out);

/* Converter ("O&") of PyArg_ParseTuple: accepts a tuple, else sets
 * TypeError. */
static inline bool st_bind_is_row(PyObject* row) {
  if (PyTuple_Check(row))
    return true;
  PyErr_Format(PyExc_TypeError, "expected a tuple, not %R", row);
  return false;
}
