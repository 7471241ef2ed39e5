#include "bind/common/arguments.h"

static bool too_many(const struct st_bind_signature* s, Py_ssize_t count) {
  PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments, got %zd",
               s->function, s->max, count);
  return false;
}

static int find_name(const struct st_bind_signature* s, PyObject* name) {
  for (int i = 0; i < s->max; i++) {
    if (PyUnicode_CompareWithASCIIString(name, s->names[i]) == 0)
      return i;
  }
  PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", s->function, name);
  return -1;
}

static bool set_named(const struct st_bind_signature* s, PyObject* name,
                      PyObject* value, PyObject** out) {
  int i = find_name(s, name);
  if (i < 0)
    return false;
  if (out[i]) {
    PyErr_Format(PyExc_TypeError, "%s() got argument '%U' twice", s->function,
                 name);
    return false;
  }
  out[i] = value;
  return true;
}

static bool has_required(const struct st_bind_signature* s, PyObject** out) {
  for (int i = 0; i < s->required; i++) {
    if (out[i])
      continue;
    PyErr_Format(PyExc_TypeError, "%s() needs argument '%s'", s->function,
                 s->names[i]);
    return false;
  }
  return true;
}

bool st_bind_arguments(const struct st_bind_signature* s, PyObject* const* args,
                       Py_ssize_t count, PyObject* kwnames, PyObject** out) {
  if (count > s->max)
    return too_many(s, count);
  for (int i = 0; i < s->max; i++)
    out[i] = i < count ? args[i] : NULL;
  Py_ssize_t named = kwnames ? PyTuple_Size(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; i++) {
    if (!set_named(s, PyTuple_GetItem(kwnames, i), args[count + i], out))
      return false;
  }
  return has_required(s, out);
}

bool st_bind_new_arguments(const struct st_bind_signature* s, PyObject* args,
                           PyObject* kwargs, PyObject** out) {
  Py_ssize_t count = PyTuple_Size(args);
  if (count > s->max)
    return too_many(s, count);
  for (int i = 0; i < s->max; i++)
    out[i] = i < count ? PyTuple_GetItem(args, i) : NULL;
  PyObject *name, *value;
  Py_ssize_t pos = 0;
  while (kwargs && PyDict_Next(kwargs, &pos, &name, &value)) {
    if (!set_named(s, name, value, out))
      return false;
  }
  return has_required(s, out);
}

bool st_bind_integer(PyObject* value, const char* name, int64_t min,
                     int64_t max, int64_t* out) {
  if (!value)
    return true;
  if (!PyLong_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", name,
                 (PyObject*)Py_TYPE(value));
    return false;
  }
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (v == -1 && PyErr_Occurred())
    return false;
  if (overflow || v < min || v > max) {
    PyErr_Format(PyExc_ValueError, "%s must be from %lld to %lld, not %R", name,
                 (long long)min, (long long)max, value);
    return false;
  }
  *out = v;
  return true;
}

bool st_bind_id16(PyObject* value, const char* name, uint16_t* out) {
  int64_t v = 0;
  if (!st_bind_integer(value, name, 1, UINT16_MAX, &v))
    return false;
  *out = (uint16_t)v;
  return true;
}

bool st_bind_target_buffer(PyObject* value, uint32_t* out) {
  long long v = PyLong_Check(value) ? PyLong_AsLongLong(value) : 0;
  if (v <= UINT16_MAX || v > UINT32_MAX || (v & UINT16_MAX) != 0) {
    /* The int is no startup reservation, so it is then checked as a buffer
     * id. */
    PyErr_Clear();
    uint16_t id = 0;
    if (!st_bind_id16(value, "target_buffer", &id))
      return false;
    v = id;
  }
  *out = (uint32_t)v;
  return true;
}

bool st_bind_fd(PyObject* value, const char* name, bool optional, int* out) {
  int64_t fd = -1;
  if (!st_bind_integer(value, name, optional ? -1 : 0, INT32_MAX, &fd))
    return false;
  *out = (int)fd;
  return true;
}

bool st_bind_bytes(PyObject* value, const char* name, Py_buffer* out) {
  if (PyObject_GetBuffer(value, out, PyBUF_SIMPLE) == 0)
    return true;
  if (PyErr_ExceptionMatches(PyExc_TypeError))
    PyErr_Format(PyExc_TypeError, "%s must be bytes-like, not %R", name,
                 (PyObject*)Py_TYPE(value));
  return false;
}
