#include "bind/protozero/decoded_field.h"

#include "bind/common/errors.h"
#include "bind/protozero/decoder_object.h"
#include "bind/protozero/message_value.h"

enum { MAX_FREE = 256 };

typedef struct {
  PyObject_HEAD
  /* The payload of a delimited field.  Empty for other fields. */
  struct byte_range range;
  uint32_t number;
  uint32_t wire_type;
  uint64_t value;
} FieldObject;

typedef struct {
  PyObject_HEAD
  struct byte_range left;
  uint32_t wire_type;
} PackedObject;

static PyTypeObject* field_type;
static PyTypeObject* packed_type;
static FieldObject* free_list[MAX_FREE];
static int free_count;

static FieldObject* cast(PyObject* self) {
  return (FieldObject*)self;
}

PyObject* decoded_field_new(const struct byte_range* range,
                            const struct st_field* field) {
  FieldObject* f = free_count
                       ? (FieldObject*)PyObject_Init(
                             (PyObject*)free_list[--free_count], field_type)
                       : (FieldObject*)field_type->tp_alloc(field_type, 0);
  if (!f)
    return NULL;
  bool is_delimited = field->wire_type == ST_WIRE_DELIMITED;
  f->range = is_delimited ? byte_range_part(range, field->data, field->size)
                          : (struct byte_range){0};
  f->number = field->number;
  f->wire_type = field->wire_type;
  f->value = is_delimited ? 0 : field->value;
  return (PyObject*)f;
}

static void field_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  byte_range_clear(&cast(self)->range);
  if (ST_FREE_LISTS && free_count < MAX_FREE)
    free_list[free_count++] = cast(self);
  else
    type->tp_free(self);
  Py_DECREF(type);
}

#define AS_NUMBER(name, kind)                                        \
  static PyObject* name(PyObject* self, PyObject* Py_UNUSED(none)) { \
    return value_from_bits(kind, cast(self)->value);                 \
  }
AS_NUMBER(as_int32, VALUE_INT32)
AS_NUMBER(as_int64, VALUE_INT64)
AS_NUMBER(as_uint32, VALUE_UINT32)
AS_NUMBER(as_uint64, VALUE_UINT64)
AS_NUMBER(as_sint32, VALUE_SINT32)
AS_NUMBER(as_sint64, VALUE_SINT64)
AS_NUMBER(as_bool, VALUE_BOOL)
AS_NUMBER(as_float, VALUE_FLOAT)
AS_NUMBER(as_double, VALUE_DOUBLE)
#undef AS_NUMBER

static PyObject* as_string(PyObject* self, PyObject* Py_UNUSED(none)) {
  return value_string(cast(self)->range.data, cast(self)->range.size);
}

static PyObject* as_bytes(PyObject* self, PyObject* Py_UNUSED(none)) {
  return PyBytes_FromStringAndSize((const char*)cast(self)->range.data,
                                   (Py_ssize_t)cast(self)->range.size);
}

static PyObject* as_message(PyObject* self, PyObject* Py_UNUSED(none)) {
  const struct byte_range* range = &cast(self)->range;
  return decoder_new_for(byte_range_part(range, range->data, range->size));
}

static PyObject* packed(PyObject* self, uint32_t wire_type) {
  PackedObject* p = (PackedObject*)packed_type->tp_alloc(packed_type, 0);
  if (!p)
    return NULL;
  const struct byte_range* range = &cast(self)->range;
  p->left = byte_range_part(range, range->data, range->size);
  p->wire_type = wire_type;
  return (PyObject*)p;
}

static PyObject* packed_varints(PyObject* self, PyObject* Py_UNUSED(none)) {
  return packed(self, ST_WIRE_VARINT);
}

static PyObject* packed_fixed32(PyObject* self, PyObject* Py_UNUSED(none)) {
  return packed(self, ST_WIRE_FIXED32);
}

static PyObject* packed_fixed64(PyObject* self, PyObject* Py_UNUSED(none)) {
  return packed(self, ST_WIRE_FIXED64);
}

static void packed_dealloc(PyObject* self) {
  byte_range_clear(&((PackedObject*)self)->left);
  st_bind_free(self);
}

static PyObject* packed_next(PyObject* self) {
  PackedObject* p = (PackedObject*)self;
  if (!p->left.size)
    return NULL;
  uint64_t value;
  const uint8_t* end = p->left.data + p->left.size;
  const uint8_t* after =
      st_get_element(p->left.data, end, p->wire_type, &value);
  if (!after) {
    set_decode_error("cut element of a packed field, %zu bytes before its end",
                     p->left.size);
    p->left.size = 0;
    return NULL;
  }
  p->left.data = after;
  p->left.size = (size_t)(end - after);
  return PyLong_FromUnsignedLongLong(value);
}

static PyObject* get_number(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromUnsignedLong(cast(self)->number);
}

static PyObject* get_wire_type(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromUnsignedLong(cast(self)->wire_type);
}

static PyObject* get_value(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromUnsignedLongLong(cast(self)->value);
}

static PyObject* get_data(PyObject* self, void* Py_UNUSED(closure)) {
  return byte_range_view(&cast(self)->range);
}

static PyObject* field_repr(PyObject* self) {
  FieldObject* f = cast(self);
  PyObject* value = f->wire_type == ST_WIRE_DELIMITED
                        ? as_bytes(self, NULL)
                        : PyLong_FromUnsignedLongLong(f->value);
  PyObject* text =
      value ? PyUnicode_FromFormat("DecodedField(%u, wire_type=%u, %R)",
                                   f->number, f->wire_type, value)
            : NULL;
  Py_XDECREF(value);
  return text;
}

static PyMethodDef kMethods[] = {
    {"as_int32", as_int32, METH_NOARGS, "The low 32 bits, signed."},
    {"as_int64", as_int64, METH_NOARGS, "The 64 bits, signed."},
    {"as_uint32", as_uint32, METH_NOARGS, "The low 32 bits."},
    {"as_uint64", as_uint64, METH_NOARGS, "The 64 bits."},
    {"as_sint32", as_sint32, METH_NOARGS, "The low 32 bits, zigzag decoded."},
    {"as_sint64", as_sint64, METH_NOARGS, "The 64 bits, zigzag decoded."},
    {"as_bool", as_bool, METH_NOARGS, "Whether it isn't 0."},
    {"as_float", as_float, METH_NOARGS, "The low 32 bits as a float."},
    {"as_double", as_double, METH_NOARGS, "The 64 bits as a double."},
    {"as_string", as_string, METH_NOARGS,
     "The bytes as UTF-8, others as surrogate escapes."},
    {"as_bytes", as_bytes, METH_NOARGS, "A copy of the bytes."},
    {"as_message", as_message, METH_NOARGS, "A Decoder of the bytes."},
    {"packed_varints", packed_varints, METH_NOARGS,
     "The elements of a packed field; DecodeError after the last complete "
     "one."},
    {"packed_fixed32", packed_fixed32, METH_NOARGS, "As packed_varints()."},
    {"packed_fixed64", packed_fixed64, METH_NOARGS, "As packed_varints()."},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"number", get_number, NULL, "The field's number.", NULL},
    {"wire_type", get_wire_type, NULL,
     "VARINT, FIXED64, DELIMITED or FIXED32 of stretto.protozero.wire.", NULL},
    {"value", get_value, NULL, "Unsigned; 0 for a delimited field.", NULL},
    {"data", get_data, NULL,
     "The bytes of a delimited field, a view of the input; else empty.", NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "An encoded field.\n\nThe as_ methods convert it. They truncate integers "
     "to their width, and return 0 or an empty value if the wire type does not "
     "match: a peer may send any type in any field."},
    {Py_tp_dealloc, field_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_repr, field_repr},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC(
    "DecodedField", FieldObject,
    Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, kSlots);

static PyType_Slot kPackedSlots[] = {
    {Py_tp_doc, "The elements of a packed field."},
    {Py_tp_dealloc, packed_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, packed_next},
    {0, NULL},
};

static PyType_Spec kPackedSpec = ST_BIND_SPEC(
    "PackedElements", PackedObject,
    Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, kPackedSlots);

ST_BIND_PART(decoded_field) {
  packed_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kPackedSpec, NULL);
  field_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  return packed_type && field_type ? PyModule_AddType(module, field_type) : -1;
}
