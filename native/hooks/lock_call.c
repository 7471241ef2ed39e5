#include "hooks/lock_call.h"

#include <math.h>
#include <stdbool.h>

/* Longer times may be too long for the lock. */
static const double kMaxSeconds = 1e6;

/* The arguments of acquire; NULL if missing. */
struct arguments {
  PyObject *blocking, *timeout;
};

/* --- Arguments ----------------------------------------------------------- */

/* Whether a str has these characters.  Inline, as calls of libpython take longer
 * than the comparison. */
static inline bool is_text(PyObject* name, const char* text, size_t size) {
  return PyUnicode_IS_COMPACT_ASCII(name) &&
         (size_t)PyUnicode_GET_LENGTH(name) == size &&
         !memcmp(PyUnicode_DATA(name), text, size + 1);
}

/* Returns whether the argument is a known one that was missing. */
static bool set_named(struct arguments* out, PyObject* name, PyObject* value) {
  PyObject** argument = !PyUnicode_CheckExact(name)    ? NULL
                        : is_text(name, "timeout", 7)  ? &out->timeout
                        : is_text(name, "blocking", 8) ? &out->blocking
                                                       : NULL;
  if (!argument || *argument)
    return false;
  *argument = value;
  return true;
}

static bool set_from_dict(struct arguments* out, PyObject* dict) {
  PyObject *name, *value;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = PyDict_GET_SIZE(dict); i > 0; i--)
    if (!PyDict_Next(dict, &position, &name, &value) ||
        !set_named(out, name, value))
      return false;
  return true;
}

static bool set_from_array(struct arguments* out, PyObject* names,
                           PyObject* const* values) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
    if (!set_named(out, PyTuple_GET_ITEM(names, i), values[i]))
      return false;
  return true;
}

/* Returns whether the arguments are those that acquire has. */
static bool read_arguments(const struct st_lock_call* call,
                           struct arguments* out) {
  Py_ssize_t count = call->tuple ? PyTuple_GET_SIZE(call->tuple) : call->count;
  PyObject* const* values =
      call->tuple ? ((PyTupleObject*)call->tuple)->ob_item : call->array;
  if (count > 2)
    return false;
  out->blocking = count > 0 ? values[0] : NULL;
  out->timeout = count > 1 ? values[1] : NULL;
  if (!call->names)
    return true;
  return call->flags == ST_WITH_KEYWORDS
             ? set_from_dict(out, call->names)
             : set_from_array(out, call->names, values + count);
}

/* --- Wishes -------------------------------------------------------------- */

static enum st_lock_wish wish_of_blocking(PyObject* blocking) {
  if (!blocking || blocking == Py_True)
    return ST_WAITS_IF_TAKEN;
  bool is_number = PyBool_Check(blocking) || PyLong_CheckExact(blocking);
  return is_number && !PyObject_IsTrue(blocking) ? ST_NEVER_WAITS
                                                 : ST_UNCLEAR_WISH;
}

/* Returns a number of seconds; NAN if the value is none. */
static double seconds_of(PyObject* timeout) {
  if (PyFloat_CheckExact(timeout))
    return PyFloat_AS_DOUBLE(timeout);
  int overflow = 1;
  long seconds = PyLong_CheckExact(timeout)
                     ? PyLong_AsLongAndOverflow(timeout, &overflow)
                     : 0;
  return overflow ? NAN : (double)seconds;
}

static enum st_lock_wish wish_of_timeout(PyObject* timeout) {
  double seconds = timeout ? seconds_of(timeout) : -1;
  if (seconds == 0)
    return ST_NEVER_WAITS;
  bool is_clear = seconds == -1 || (seconds > 0 && seconds < kMaxSeconds);
  return is_clear ? ST_WAITS_IF_TAKEN : ST_UNCLEAR_WISH;
}

enum st_lock_wish st_lock_call_wish(const struct st_lock_call* call) {
  struct arguments arguments = {0};
  if (!read_arguments(call, &arguments))
    return ST_UNCLEAR_WISH;
  enum st_lock_wish wish = wish_of_blocking(arguments.blocking);
  return wish == ST_WAITS_IF_TAKEN ? wish_of_timeout(arguments.timeout) : wish;
}
