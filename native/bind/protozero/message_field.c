/* Encodes Python values as fields of generated writers.
 *
 * Values of the kind's exact Python type are encoded at once.  Others go
 * through the helper `check`, a Python function that converts them or raises an
 * error that names the problem.  It may run any Python code, so it is called
 * before the message is changed. */
#include "bind/protozero/message_field.h"

#include "bind/common/arguments.h"
#include "core/packed.h"

static PyTypeObject* field_type;

static bool checked_to_bits(const struct message_field* f, PyObject* value,
                            uint64_t* bits) {
  PyObject* checked = PyObject_CallOneArg(f->helper, value);
  if (!checked)
    return false;
  bool done = value_to_bits(f->kind, checked, bits);
  if (!done)
    PyErr_Format(PyExc_TypeError, "%U: check() returned %R", f->name, checked);
  Py_DECREF(checked);
  return done;
}

static inline bool to_bits(const struct message_field* f, PyObject* value,
                           uint64_t* bits) {
  return value_to_bits(f->kind, value, bits) || checked_to_bits(f, value, bits);
}

static PyObject* append_slowly(struct message_writer* w, const uint8_t* bytes,
                               const uint8_t* end) {
  if (!message_writer_append(w, bytes, (size_t)(end - bytes)))
    return NULL;
  Py_RETURN_NONE;
}

/* The largest size of a tag and a varint together. */
enum { NUMBER_ROOM = 16 };

/* Writes the tag of a field and a varint as its value at p. */
static inline uint8_t* put_varint(const struct message_field* f, uint8_t* p,
                                  uint64_t bits) {
  memcpy(p, f->tag, sizeof f->tag);
  return st_put_varint(p + f->tag_size, bits);
}

static PyObject* append_varint(struct message_field* f,
                               struct message_writer* w, PyObject* value) {
  uint64_t bits;
  bool is_small = small_int(value, &bits) && bits <= f->small_max;
  if (!is_small && !to_bits(f, value, &bits))
    return NULL;
  uint8_t* p = message_writer_room(w, NUMBER_ROOM);
  if (p) {
    st_message_advance(&w->at->message, put_varint(f, p, bits));
    Py_RETURN_NONE;
  }
  uint8_t bytes[NUMBER_ROOM];
  return append_slowly(w, bytes, put_varint(f, bytes, bits));
}

static inline uint8_t* put_fixed(const struct message_field* f, uint8_t* p,
                                 uint64_t bits) {
  memcpy(p, f->tag, sizeof f->tag);
  memcpy(p + f->tag_size, &bits, sizeof bits);
  bool is_short = value_wire_type(f->kind) == ST_WIRE_FIXED32;
  return p + f->tag_size + (is_short ? 4 : 8);
}

static PyObject* append_fixed(struct message_field* f, struct message_writer* w,
                              PyObject* value) {
  uint64_t bits;
  if (!to_bits(f, value, &bits))
    return NULL;
  uint8_t* p = message_writer_room(w, NUMBER_ROOM);
  if (p) {
    st_message_advance(&w->at->message, put_fixed(f, p, bits));
    Py_RETURN_NONE;
  }
  uint8_t bytes[NUMBER_ROOM];
  return append_slowly(w, bytes, put_fixed(f, bytes, bits));
}

static PyObject* none_if(bool done) {
  return done ? Py_NewRef(Py_None) : NULL;
}

/* Encodes a str that PyUnicode_AsUTF8AndSize rejects because it contains
 * surrogate escapes. */
static bool append_checked_string(const struct message_field* f,
                                  struct message_writer* w, PyObject* value) {
  PyObject* checked = PyObject_CallOneArg(f->helper, value);
  PyObject* encoded =
      checked ? PyUnicode_AsEncodedString(checked, "utf-8", "surrogateescape")
              : NULL;
  bool done = encoded && message_writer_append_bytes(
                             w, f->number, PyBytes_AS_STRING(encoded),
                             (size_t)PyBytes_GET_SIZE(encoded));
  Py_XDECREF(encoded);
  Py_XDECREF(checked);
  return done;
}

static PyObject* append_string(struct message_field* f,
                               struct message_writer* w, PyObject* value) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_CheckExact(value)
                         ? PyUnicode_AsUTF8AndSize(value, &size)
                         : NULL;
  if (utf8)
    return none_if(
        message_writer_append_bytes(w, f->number, utf8, (size_t)size));
  PyErr_Clear();
  return none_if(append_checked_string(f, w, value));
}

static bool append_checked_bytes(const struct message_field* f,
                                 struct message_writer* w, PyObject* value) {
  PyObject* checked = PyObject_CallOneArg(f->helper, value);
  Py_buffer bytes;
  if (!checked)
    return false;
  bool done = st_bind_bytes(checked, "a value", &bytes);
  if (done) {
    done =
        message_writer_append_bytes(w, f->number, bytes.buf, (size_t)bytes.len);
    PyBuffer_Release(&bytes);
  }
  Py_DECREF(checked);
  return done;
}

static PyObject* append_bytes(struct message_field* f, struct message_writer* w,
                              PyObject* value) {
  return none_if(
      PyBytes_CheckExact(value)
          ? message_writer_append_bytes(w, f->number, PyBytes_AS_STRING(value),
                                        (size_t)PyBytes_GET_SIZE(value))
          : append_checked_bytes(f, w, value));
}

static bool add_element(const struct message_field* f, struct st_packed* packed,
                        PyObject* value) {
  uint64_t bits;
  if (!to_bits(f, value, &bits))
    return false;
  uint32_t wire_type = value_wire_type(f->kind);
  bool added = wire_type == ST_WIRE_VARINT
                   ? st_packed_add_varint(packed, bits)
                   : st_packed_add_fixed(packed, bits,
                                         wire_type == ST_WIRE_FIXED32 ? 4 : 8);
  if (!added)
    PyErr_NoMemory();
  return added;
}

/* The helper `check` may change the list.  So the list's size is read again for
 * each element, and a reference to each element is held. */
static bool add_elements(const struct message_field* f,
                         struct st_packed* packed, PyObject* values) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
    PyObject* value = PyList_Check(values)
                          ? PyList_GetItemRef(values, i)
                          : Py_NewRef(PyTuple_GET_ITEM(values, i));
    bool added = value && add_element(f, packed, value);
    Py_XDECREF(value);
    if (!added)
      return false;
  }
  return true;
}

/* Returns the elements of a repeated field's value as a list or tuple.  Refuses
 * str and bytes with an error, although they are sequences. */
static PyObject* elements_of(const struct message_field* f, PyObject* values) {
  bool is_text = PyUnicode_Check(values) || PyBytes_Check(values);
  return is_text ? PyObject_CallOneArg(f->helper, values)
                 : PySequence_Fast(values, "a packed field takes a list");
}

static PyObject* append_packed(struct message_field* f,
                               struct message_writer* w, PyObject* list) {
  PyObject* values = elements_of(f, list);
  if (!values)
    return NULL;
  struct st_packed packed;
  st_packed_init(&packed);
  bool done = add_elements(f, &packed, values) &&
              message_writer_append_bytes(w, f->number, packed.begin,
                                          st_packed_size(&packed));
  st_packed_free(&packed);
  Py_DECREF(values);
  return none_if(done);
}

static bool find_writer(struct message_field* f) {
  PyObject* type = PyObject_CallNoArgs(f->helper);
  if (type && PyType_Check(type) &&
      PyType_IsSubtype((PyTypeObject*)type, message_writer_type)) {
    Py_XSETREF(f->writer, (PyTypeObject*)type);
    return true;
  }
  if (type)
    PyErr_Format(PyExc_TypeError, "%U: %R is no class of writers", f->name,
                 type);
  Py_XDECREF(type);
  return false;
}

static PyObject* open_message(struct message_field* f, struct message_writer* w,
                              PyObject* Py_UNUSED(none)) {
  return f->writer || find_writer(f)
             ? message_writer_open(f->writer, w, f->number)
             : NULL;
}

static uint64_t small_max(enum value_kind kind) {
  bool is_plain = value_wire_type(kind) == ST_WIRE_VARINT &&
                  kind != VALUE_SINT32 && kind != VALUE_SINT64 &&
                  kind != VALUE_BOOL;
  return is_plain ? value_max(kind) : 0;
}

static void set_append(struct message_field* f, bool is_packed) {
  if (is_packed)
    f->append = append_packed;
  else if (f->kind == VALUE_STRING)
    f->append = append_string;
  else if (f->kind == VALUE_BYTES)
    f->append = append_bytes;
  else if (f->kind == VALUE_MESSAGE)
    f->append = open_message;
  else if (value_wire_type(f->kind) == ST_WIRE_VARINT)
    f->append = append_varint;
  else
    f->append = append_fixed;
}

struct message_field* message_field_new(PyObject* row) {
  PyObject *name, *helper;
  unsigned number;
  const char* kind_name;
  int is_packed;
  if (!st_bind_is_row(row) ||
      !PyArg_ParseTuple(row, "UIspO", &name, &number, &kind_name, &is_packed,
                        &helper))
    return NULL;
  enum value_kind kind = value_kind_named(kind_name);
  if (kind == VALUE_KINDS || number < 1 || number > ST_MAX_NUMBER) {
    PyErr_Format(PyExc_ValueError, "no such kind or number: %R", row);
    return NULL;
  }
  struct message_field* f =
      (struct message_field*)field_type->tp_alloc(field_type, 0);
  if (!f)
    return NULL;
  f->name = Py_NewRef(name);
  f->helper = Py_NewRef(helper);
  f->number = number;
  f->kind = kind;
  f->small_max = small_max(kind);
  uint8_t* end = st_put_tag(f->tag, number, value_wire_type(kind));
  f->tag_size = (uint8_t)(end - f->tag);
  set_append(f, is_packed);
  return f;
}

static int field_traverse(PyObject* self, visitproc visit, void* arg) {
  struct message_field* f = (struct message_field*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(f->helper);
  Py_VISIT(f->writer);
  return 0;
}

static void field_dealloc(PyObject* self) {
  struct message_field* f = (struct message_field*)self;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(f->helper);
  Py_CLEAR(f->writer);
  Py_CLEAR(f->name);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "A field of a generated writer."},
    {Py_tp_traverse, field_traverse},
    {Py_tp_dealloc, field_dealloc},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("MessageField", struct message_field,
                 Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                     Py_TPFLAGS_IMMUTABLETYPE,
                 kSlots);

ST_BIND_PART(message_field) {
  field_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  return field_type ? 0 : -1;
}
