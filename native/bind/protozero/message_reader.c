/* merge_known_fields(): decodes fields of a message into the dict of a
 * stretto.protozero.message.Message.
 *
 * The rules are those of stretto.protozero.message, which calls this first and
 * handles the field at which this function stops.  That is a field that the
 * plan does not list, a field whose value has to be merged, or a malformed
 * field.
 *
 * A plan is a dict from tags (number << 3 | wire type) to lists, made by
 * Layout.plan.  The enum below names the items of a list.
 *
 * Threads: used with the GIL. A call handles a bounded number of fields, so
 * that other threads may run in between.
 */
#include "bind/common/python.h"

#include <string.h>

#include "core/wire.h"

enum {
  NAME,
  /* Item of a plan: the kind of the field's value, as one character. */
  KIND,
  REPEATED, /* Item of a plan: whether the field is repeated, as a bool. */
  /* Item of a plan: a tuple with the names of the other fields of the same
   * oneof. */
  RIVALS,
  /* Item of a plan: for a message field the object that has its message_class,
   * else None. */
  CODEC,
  /* Item of a plan: the class of a message field; None until the class is
   * used. */
  CLASS,
  /* Item of a plan: for a message field, the plan of the field's class; None
   * until the plan of that class is used. */
  PLAN,
};

enum {
  /* The largest depth of nested messages, the same as in
   * stretto.protozero.message. */
  MAX_DEPTH = 100,
  /* One call handles at most this number of fields of the outermost message, so
   * that other threads can run between two calls. */
  FIELDS_PER_CALL = 1000,
};

struct wire_field {
  /* The field's value.  For a delimited field, the position of the payload's
   * first byte. */
  uint64_t tag, value;
  Py_ssize_t end;
};

struct source {
  PyObject* bytes;
  const uint8_t* data;
};

static bool read_field(const struct source* in, Py_ssize_t at, Py_ssize_t end,
                       struct wire_field* out) {
  const uint8_t* stop = in->data + end;
  const uint8_t* p = st_get_varint(in->data + at, stop, &out->tag);
  if (!p || out->tag > UINT32_MAX)
    return false;
  uint32_t wire_type = out->tag & 7;
  if (wire_type == ST_WIRE_VARINT) {
    p = st_get_varint(p, stop, &out->value);
  } else if (wire_type == ST_WIRE_DELIMITED) {
    uint64_t size;
    p = st_get_varint(p, stop, &size);
    if (!p || size > (uint64_t)(stop - p))
      return false;
    out->value = (uint64_t)(p - in->data);
    p += size;
  } else if (wire_type == ST_WIRE_FIXED32 || wire_type == ST_WIRE_FIXED64) {
    ptrdiff_t size = wire_type == ST_WIRE_FIXED32 ? 4 : 8;
    if (stop - p < size)
      return false;
    out->value = 0;
    memcpy(&out->value, p, (size_t)size);
    p += size;
  } else {
    return false;
  }
  if (!p)
    return false;
  out->end = p - in->data;
  return true;
}

static Py_ssize_t merge(PyObject* values, PyObject* plan,
                        const struct source* in, Py_ssize_t at, Py_ssize_t end,
                        long depth, long fields);

/* Stores two items in the plan of a message field: the class of the field's
 * messages, and the plan for that class. */
static int resolve(PyObject* entry) {
  PyObject* made =
      PyObject_GetAttrString(PyList_GetItem(entry, CODEC), "message_class");
  PyObject* layout = made ? PyObject_GetAttrString(made, "LAYOUT") : NULL;
  PyObject* plan = layout ? PyObject_GetAttrString(layout, "read_plan") : NULL;
  Py_XDECREF(layout);
  if (plan && (!PyType_Check(made) || !PyDict_Check(plan))) {
    PyErr_SetString(PyExc_TypeError, "expected a class of messages");
    Py_CLEAR(plan);
  }
  if (!plan) {
    Py_XDECREF(made);
    return -1;
  }
  PyList_SetItem(entry, CLASS, made);
  PyList_SetItem(entry, PLAN, plan);
  return 0;
}

/* Makes an empty message, as Message.__init__ does without arguments. */
static PyObject* new_message(PyObject* type) {
  PyObject* none = PyTuple_New(0);
  PyObject* empty = PyBytes_FromStringAndSize(NULL, 0);
  PyObject* name = PyUnicode_InternFromString("unknown_fields");
  PyObject* message =
      none && empty && name
          ? PyBaseObject_Type.tp_new((PyTypeObject*)type, none, NULL)
          : NULL;
  if (message && PyObject_GenericSetAttr(message, name, empty) < 0)
    Py_CLEAR(message);
  Py_XDECREF(none);
  Py_XDECREF(empty);
  Py_XDECREF(name);
  return message;
}

static PyObject* read_message(PyObject* entry, const struct source* in,
                              Py_ssize_t start, Py_ssize_t end, long depth) {
  if (PyList_GetItem(entry, PLAN) == Py_None && resolve(entry) < 0)
    return NULL;
  PyObject* message = new_message(PyList_GetItem(entry, CLASS));
  PyObject* values = message ? PyObject_GenericGetDict(message, NULL) : NULL;
  if (!values) {
    Py_XDECREF(message);
    return NULL;
  }
  Py_ssize_t at = merge(values, PyList_GetItem(entry, PLAN), in, start, end,
                        depth, PY_SSIZE_T_MAX);
  Py_DECREF(values);
  PyObject* rest = NULL;
  if (at >= 0 && at < end)
    rest = PyObject_CallMethod(message, "merge_encoded", "Onnl", in->bytes, at,
                               end, depth);
  if (at < 0 || (at < end && !rest))
    Py_CLEAR(message);
  Py_XDECREF(rest);
  return message;
}

static PyObject* read_value(PyObject* entry, const struct source* in,
                            const struct wire_field* field, long depth) {
  const char* text = (const char*)in->data + field->value;
  /* The size of the delimited field's payload. */
  Py_ssize_t size = field->end - (Py_ssize_t)field->value;
  switch (PyUnicode_READ_CHAR(PyList_GetItem(entry, KIND), 0)) {
    case 'b':
      return PyBool_FromLong(field->value != 0);
    case 'i':
      return PyLong_FromLong((int32_t)(uint32_t)field->value);
    case 'I':
      return PyLong_FromUnsignedLong((uint32_t)field->value);
    case 'q':
      return PyLong_FromLongLong((int64_t)field->value);
    case 'Q':
      return PyLong_FromUnsignedLongLong(field->value);
    case 's':
      return PyUnicode_DecodeUTF8(text, size, "surrogateescape");
    case 'y':
      return PyBytes_FromStringAndSize(text, size);
    default:
      return read_message(entry, in, (Py_ssize_t)field->value, field->end,
                          depth + 1);
  }
}

static int clear_rivals(PyObject* values, PyObject* rivals) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(rivals); i++) {
    PyObject* name = PyTuple_GetItem(rivals, i);
    int there = PyDict_Contains(values, name);
    if (there < 0 || (there && PyDict_DelItem(values, name) < 0))
      return -1;
  }
  return 0;
}

static int append(PyObject* values, PyObject* name, PyObject* value) {
  PyObject* list;
  int found = PyDict_GetItemRef(values, name, &list);
  if (found < 0 || (!found && !(list = PyList_New(0))))
    return -1;
  int result = PyList_Append(list, value);
  if (result == 0 && !found)
    result = PyDict_SetItem(values, name, list);
  Py_DECREF(list);
  return result;
}

/* Stores the value of a field in the dict.  Returns 1 if it was stored, or 0 if
 * the Python caller has to handle the field.  Returns -1 with an exception set
 * on failure. */
static int take(PyObject* values, PyObject* entry, const struct source* in,
                const struct wire_field* field, long depth) {
  PyObject* name = PyList_GetItem(entry, NAME);
  bool repeated = PyList_GetItem(entry, REPEATED) == Py_True;
  if (PyList_GetItem(entry, CODEC) != Py_None) {
    int merged = repeated ? 0 : PyDict_Contains(values, name);
    if (merged || depth >= MAX_DEPTH)
      return merged < 0 ? -1 : 0;
  }
  PyObject* value = read_value(entry, in, field, depth);
  if (!value)
    return -1;
  int result = repeated ? append(values, name, value)
                        : clear_rivals(values, PyList_GetItem(entry, RIVALS));
  if (!repeated && result == 0)
    result = PyDict_SetItem(values, name, value);
  Py_DECREF(value);
  return result < 0 ? -1 : 1;
}

/* Merges fields into the dict until the Python caller has to handle one.
 * Returns the position of that field.  Returns -1 with an exception set on
 * failure. */
static Py_ssize_t merge(PyObject* values, PyObject* plan,
                        const struct source* in, Py_ssize_t at, Py_ssize_t end,
                        long depth, long fields) {
  struct wire_field field;
  while (at < end && fields-- > 0 && read_field(in, at, end, &field)) {
    PyObject* tag = PyLong_FromUnsignedLongLong(field.tag);
    if (!tag)
      return -1;
    PyObject* entry;
    int found = PyDict_GetItemRef(plan, tag, &entry);
    Py_DECREF(tag);
    if (found <= 0)
      return found < 0 ? -1 : at;
    int taken = take(values, entry, in, &field, depth);
    Py_DECREF(entry);
    if (taken < 0)
      return -1;
    if (!taken)
      return at;
    at = field.end;
  }
  return at;
}

static PyObject* merge_known_fields(PyObject* Py_UNUSED(module),
                                    PyObject* args) {
  PyObject *values, *plan, *bytes;
  Py_ssize_t start, end;
  long depth;
  if (!PyArg_ParseTuple(args, "O!O!Snnl:merge_known_fields", &PyDict_Type,
                        &values, &PyDict_Type, &plan, &bytes, &start, &end,
                        &depth))
    return NULL;
  if (start < 0 || end > PyBytes_Size(bytes)) {
    PyErr_SetString(PyExc_ValueError, "the range isn't within the data");
    return NULL;
  }
  struct source in = {bytes, (const uint8_t*)PyBytes_AsString(bytes)};
  Py_ssize_t at = merge(values, plan, &in, start, end, depth, FIELDS_PER_CALL);
  return at < 0 ? NULL : PyLong_FromSsize_t(at);
}

static PyMethodDef kFunctions[] = {
    {"merge_known_fields", merge_known_fields, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(message_reader) {
  return PyModule_AddFunctions(module, kFunctions);
}
