#include "bind/track_event/annotations.h"

#include "bind/common/text.h"
#include "bind/track_event/argument_errors.h"
#include "core/fields.h"
#include "core/intern_table.h"
#include "core/wire.h"

enum {
  /* The largest depth of nested containers.  A deeper container is replaced by
   * a mark. */
  MAX_ARGUMENT_DEPTH = 16,
};

enum {
  VALUE_BOOL = ST_FIELD_DEBUG_ANNOTATION_BOOL_VALUE,
  VALUE_INT = ST_FIELD_DEBUG_ANNOTATION_INT_VALUE,
  VALUE_DOUBLE = ST_FIELD_DEBUG_ANNOTATION_DOUBLE_VALUE,
  VALUE_STRING = ST_FIELD_DEBUG_ANNOTATION_STRING_VALUE,
  ENTRY_NAME = ST_FIELD_DEBUG_ANNOTATION_NAME,
  DICT_ENTRIES = ST_FIELD_DEBUG_ANNOTATION_DICT_ENTRIES,
  ARRAY_VALUES = ST_FIELD_DEBUG_ANNOTATION_ARRAY_VALUES,

  /* The largest number of items of a container that are written.  Each item
   * takes at least five bytes. */
  MAX_ITEMS = 1024,
  MAX_DECIMAL_DIGITS = 2048,
};

static bool fits_in_64_bits(PyObject* integer) {
  int overflow;
  PyLong_AsLongLongAndOverflow(integer, &overflow);
  return !overflow;
}

bool argument_is_plain(PyObject* value) {
  return PyUnicode_CheckExact(value) || PyFloat_CheckExact(value) ||
         PyBool_Check(value) || value == Py_None ||
         (PyLong_CheckExact(value) && fits_in_64_bits(value));
}

/* Appends a string value.  If the string was truncated, appends a mark with the
 * full size, which is `total`, counted in `unit`. */
static void append_text(struct bytes_builder* out, const char* data,
                        size_t size, Py_ssize_t total, const char* unit) {
  char mark[64] = "";
  size_t mark_size = 0;
  if (size > MAX_ARGUMENT_BYTES || total > MAX_ARGUMENT_BYTES) {
    mark_size = (size_t)snprintf(mark, sizeof mark, "... [truncated, %zd %s]",
                                 total, unit);
    if (size > MAX_ARGUMENT_BYTES - mark_size)
      size = cut_utf8(data, MAX_ARGUMENT_BYTES - mark_size);
  }
  uint8_t* p = builder_room(out, size + mark_size + 16);
  if (!p)
    return;
  p = st_put_tag(p, VALUE_STRING, ST_WIRE_DELIMITED);
  p = st_put_varint(p, size + mark_size);
  memcpy(p, data, size);
  memcpy(p + size, mark, mark_size);
  builder_set_end(out, p + size + mark_size);
}

static void append_short_text(struct bytes_builder* out, const char* text) {
  append_text(out, text, strlen(text), 0, "");
}

/* Appends a str as a value.  A long str is truncated before it is encoded. */
static void append_string(struct bytes_builder* out, PyObject* string,
                          Py_ssize_t total, const char* unit) {
  PyObject* part = PyUnicode_GetLength(string) > MAX_ARGUMENT_BYTES
                       ? PyUnicode_Substring(string, 0, MAX_ARGUMENT_BYTES)
                       : Py_NewRef(string);
  Py_ssize_t size = 0;
  PyObject* release = NULL;
  const char* data = part ? utf8_of(part, &size, &release) : NULL;
  if (data)
    append_text(out, data, (size_t)size, total, unit);
  else
    swallow_error();
  Py_XDECREF(release);
  Py_XDECREF(part);
}

static void append_str(struct bytes_builder* out, PyObject* string) {
  append_string(out, string, PyUnicode_GetLength(string), "characters");
}

static void append_u64(struct bytes_builder* out, uint32_t field,
                       uint64_t value) {
  uint8_t* p = builder_room(out, 16);
  if (p)
    builder_set_end(out, st_put_u64_field(p, field, value));
}

static void append_double(struct bytes_builder* out, double value) {
  uint8_t* p = builder_room(out, 16);
  if (p)
    builder_set_end(out, st_put_double_field(p, VALUE_DOUBLE, value));
}

static void append_failure(struct bytes_builder* out, const char* what) {
  PyObject* type = PyErr_Occurred();
  char text[128];
  snprintf(text, sizeof text, "<%.80s in %s>",
           type ? ((PyTypeObject*)type)->tp_name : "error", what);
  swallow_error();
  append_short_text(out, text);
}

/* Appends an int that exceeds int64, as text.  An int of more than a few
 * thousand digits is written in hexadecimal: a decimal conversion takes
 * quadratic time, and sys.set_int_max_str_digits() may forbid it. */
static void append_big_int(struct bytes_builder* out, PyObject* value) {
  PyObject* text = PyNumber_ToBase(value, 16);
  if (text && PyUnicode_GetLength(text) < MAX_DECIMAL_DIGITS) {
    PyObject* decimal = PyNumber_ToBase(value, 10);
    if (decimal)
      Py_SETREF(text, decimal);
    else
      PyErr_Clear();
  }
  if (text)
    append_str(out, text);
  else
    append_failure(out, "int");
  Py_XDECREF(text);
}

/* Appends an int as a value.  Returns false, with nothing appended, if the int
 * exceeds int64. */
static bool append_small_int(struct bytes_builder* out, PyObject* value) {
  int overflow;
  long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (!overflow)
    append_u64(out, VALUE_INT, (uint64_t)v);
  return !overflow;
}

void append_plain_value(struct bytes_builder* out, PyObject* value) {
  if (PyUnicode_CheckExact(value))
    append_str(out, value);
  else if (PyBool_Check(value))
    append_u64(out, VALUE_BOOL, value == Py_True);
  else if (PyLong_CheckExact(value))
    append_small_int(out, value);
  else if (PyFloat_CheckExact(value))
    append_double(out, PyFloat_AsDouble(value));
  else
    append_short_text(out, "None");
}

static void append_value(struct bytes_builder* out, PyObject* value, int depth);

static void append_repr(struct bytes_builder* out, PyObject* value) {
  PyObject* text = PyObject_Repr(value);
  if (text)
    append_str(out, text);
  else
    append_failure(out, "repr");
  Py_XDECREF(text);
}

/* Appends the repr of the first MAX_ARGUMENT_BYTES bytes of a bytes-like
 * object. */
static void append_bytes(struct bytes_builder* out, PyObject* value) {
  Py_ssize_t total = PyObject_Size(value);
  PyObject* part = PySequence_GetSlice(value, 0, MAX_ARGUMENT_BYTES);
  PyObject* text = part ? PyObject_Repr(part) : NULL;
  if (text)
    append_string(
        out, text,
        total > MAX_ARGUMENT_BYTES ? total : PyUnicode_GetLength(text),
        total > MAX_ARGUMENT_BYTES ? "bytes" : "characters");
  else
    append_failure(out, "repr");
  Py_XDECREF(text);
  Py_XDECREF(part);
}

/* Opens a nested message and reserves four bytes for its size.  Returns the
 * offset that close_nested() needs to fill in the size. */
static size_t open_nested(struct bytes_builder* out, uint32_t field) {
  uint8_t* p = builder_room(out, 16);
  if (!p)
    return SIZE_MAX;
  p = st_put_tag(p, field, ST_WIRE_DELIMITED);
  out->size = (size_t)(p - out->data) + ST_SIZE_FIELD;
  return out->size;
}

static void close_nested(struct bytes_builder* out, size_t opened) {
  if (opened == SIZE_MAX)
    return;
  st_put_size_field(out->data + opened - ST_SIZE_FIELD,
                    (uint32_t)(out->size - opened));
}

static void append_entry_name(struct bytes_builder* out, PyObject* key) {
  PyObject* text = PyUnicode_Check(key) ? Py_NewRef(key) : PyObject_Str(key);
  Py_ssize_t size = 0;
  PyObject* release = NULL;
  const char* data = text ? utf8_of(text, &size, &release) : NULL;
  if (!data) {
    swallow_error();
    data = "?";
    size = 1;
  }
  if (size > ST_INTERN_MAX_LENGTH)
    size = (Py_ssize_t)cut_utf8(data, ST_INTERN_MAX_LENGTH);
  uint8_t* p = builder_room(out, (size_t)size + 16);
  if (p)
    builder_set_end(out, st_put_bytes_field(p, ENTRY_NAME, data, (size_t)size));
  Py_XDECREF(release);
  Py_XDECREF(text);
}

/* Appends an entry to a container's value, with the number of entries that were
 * left out. */
static void append_more(struct bytes_builder* out, uint32_t field,
                        Py_ssize_t left) {
  char text[64];
  snprintf(text, sizeof text, "... [truncated, %zd more]", left);
  size_t opened = open_nested(out, field);
  if (field == DICT_ENTRIES) {
    uint8_t* p = builder_room(out, 16);
    if (p)
      builder_set_end(out, st_put_bytes_field(p, ENTRY_NAME, "...", 3));
  }
  append_short_text(out, text);
  close_nested(out, opened);
}

/* A container is copied before its items are converted, because the repr of an
 * item may change the container.  At most MAX_ITEMS items are copied.  The copy
 * bypasses the methods of subclasses, which may run any Python code. */

/* Returns the entries of a dict as a new list [key, value, key, value, ...]. */
static PyObject* copy_of_dict(PyObject* dict) {
  Py_ssize_t room = Py_MIN(PyDict_Size(dict), MAX_ITEMS);
  PyObject* pairs = PyList_New(2 * room);
  if (!pairs)
    return NULL;
  PyObject *key, *value;
  Py_ssize_t pos = 0, count = 0;
  Py_BEGIN_CRITICAL_SECTION(dict);
  while (count < room && PyDict_Next(dict, &pos, &key, &value)) {
    PyList_SET_ITEM(pairs, 2 * count, Py_NewRef(key));
    PyList_SET_ITEM(pairs, 2 * count + 1, Py_NewRef(value));
    count++;
  }
  Py_END_CRITICAL_SECTION();
  Py_SET_SIZE(pairs, 2 * count);
  return pairs;
}

static PyObject* copy_of_set(PyObject* set) {
  PyObject* iterator = PySet_Type.tp_iter(set);
  PyObject* items = iterator ? PyList_New(0) : NULL;
  PyObject* item;
  while (items && PyList_GET_SIZE(items) < MAX_ITEMS &&
         (item = PyIter_Next(iterator))) {
    if (PyList_Append(items, item) < 0)
      Py_CLEAR(items);
    Py_DECREF(item);
  }
  Py_XDECREF(iterator);
  if (PyErr_Occurred())
    Py_CLEAR(items);
  return items;
}

static PyObject* copy_of_array(PyObject* values) {
  if (PyList_Check(values))
    return PyList_GetSlice(values, 0, MAX_ITEMS);
  if (PyTuple_Check(values))
    return PyTuple_GetSlice(values, 0, MAX_ITEMS);
  return copy_of_set(values);
}

static void append_dict(struct bytes_builder* out, PyObject* dict, int depth) {
  size_t start = out->size;
  Py_ssize_t total = PyDict_Size(dict);
  PyObject* pairs = copy_of_dict(dict);
  if (!pairs) {
    append_failure(out, "items");
    return;
  }
  Py_ssize_t count = PyList_GET_SIZE(pairs) / 2;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (out->size - start > MAX_ARGUMENT_BYTES) {
      append_more(out, DICT_ENTRIES, total - i);
      break;
    }
    size_t opened = open_nested(out, DICT_ENTRIES);
    append_entry_name(out, PyList_GET_ITEM(pairs, 2 * i));
    append_value(out, PyList_GET_ITEM(pairs, 2 * i + 1), depth + 1);
    close_nested(out, opened);
  }
  if (count == 0)
    append_short_text(out, "{}");
  Py_DECREF(pairs);
}

static const char* empty_array(PyObject* values) {
  return PyList_Check(values) ? "[]" : PyTuple_Check(values) ? "()" : "set()";
}

static void append_array(struct bytes_builder* out, PyObject* values,
                         int depth) {
  size_t start = out->size;
  Py_ssize_t total =
      PyAnySet_Check(values) ? PySet_GET_SIZE(values) : Py_SIZE(values);
  PyObject* copy = copy_of_array(values);
  if (!copy) {
    append_failure(out, "iteration");
    return;
  }
  Py_ssize_t count = Py_SIZE(copy);
  for (Py_ssize_t i = 0; i < count; i++) {
    if (out->size - start > MAX_ARGUMENT_BYTES) {
      append_more(out, ARRAY_VALUES, total - i);
      break;
    }
    size_t opened = open_nested(out, ARRAY_VALUES);
    append_value(out, PySequence_Fast_GET_ITEM(copy, i), depth + 1);
    close_nested(out, opened);
  }
  if (count == 0)
    append_short_text(out, empty_array(values));
  Py_DECREF(copy);
}

/* Appends a number of a type from another library.  Returns false if the value
 * is no number. */
static bool append_foreign_number(struct bytes_builder* out, PyObject* value) {
  if (PyFloat_Check(value)) {
    append_double(out, PyFloat_AsDouble(value));
    return true;
  }
  if (!PyLong_Check(value) && !PyIndex_Check(value))
    return false;
  PyObject* number = PyNumber_Index(value);
  if (!number) {
    swallow_error();
    return false;
  }
  if (!append_small_int(out, number))
    append_big_int(out, number);
  Py_DECREF(number);
  return true;
}

static void append_value(struct bytes_builder* out, PyObject* value,
                         int depth) {
  if (argument_is_plain(value))
    append_plain_value(out, value);
  else if (PyUnicode_Check(value))
    append_str(out, value);
  else if (PyBytes_CheckExact(value) || PyByteArray_CheckExact(value))
    append_bytes(out, value);
  else if (depth >= MAX_ARGUMENT_DEPTH)
    append_short_text(out, "... [nested too deep]");
  else if (PyDict_Check(value))
    append_dict(out, value, depth);
  else if (PyList_Check(value) || PyTuple_Check(value) || PyAnySet_Check(value))
    append_array(out, value, depth);
  else if (!append_foreign_number(out, value))
    append_repr(out, value);
}

void convert_argument(struct bytes_builder* scratch, PyObject* value,
                      struct converted_argument* out) {
  out->size = 0;
  if (argument_is_plain(value))
    return;
  /* The conversion may run Python code that records other events.  Their
   * arguments are appended to the scratch and then removed again. So this value
   * is built in a buffer of its own and then copied. */
  struct bytes_builder built = {NULL, 0, 0};
  Py_INCREF(value);
  append_value(&built, value, 0);
  Py_DECREF(value);
  if (PyErr_Occurred())
    swallow_error();
  out->offset = scratch->size;
  if (builder_append(scratch, built.data, built.size))
    out->size = built.size;
  PyMem_RawFree(built.data);
}
