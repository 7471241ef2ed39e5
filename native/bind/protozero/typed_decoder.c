/* The Python types IndexedMessage, the base class of generated decoders, and
 * DecoderField, a descriptor for one attribute of such a class.
 *
 * The constructor scans the message once and notes the position of each field.
 * A value is decoded when its attribute is read.  The last occurrence of a
 * field counts, so the notes are searched from their end.  The search is
 * linear, because messages have few fields.
 *
 * Generated classes are final and share one free list, like those of
 * message_writer_class.c.
 */
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/protozero/decoded_field.h"
#include "bind/protozero/decoder_object.h"
#include "bind/protozero/message_value.h"

#include <structmember.h>

enum { MAX_FREE = 64, INLINE_FIELDS = 8 };

typedef struct {
  PyObject_HEAD
  struct byte_range range;
  size_t left;
  size_t count, capacity;
  /* The positions of all fields of the message: inline_fields, or an array on
   * the heap. */
  struct st_field* fields;
  struct st_field inline_fields[INLINE_FIELDS];
} DecoderObject;

typedef struct {
  PyObject_HEAD
  uint32_t number;
  enum value_kind kind;
  /* The value of the attribute if the message does not contain the field. */
  PyObject* fallback;
  /* The Python function that returns the decoder class of a nested message. */
  PyObject* helper;
  /* The decoder class of a nested message; NULL until it is used first. */
  PyTypeObject* decoder;
} FieldObject;

static PyTypeObject* decoder_type;
static PyTypeObject* field_type;
static DecoderObject* free_list[MAX_FREE];
static int free_count;

static DecoderObject* cast(PyObject* self) {
  return (DecoderObject*)self;
}

static void decoder_dealloc(PyObject* self);

static bool is_closed(const PyTypeObject* type) {
  return type->tp_dealloc == decoder_dealloc;
}

static void decoder_dealloc(PyObject* self) {
  DecoderObject* d = cast(self);
  PyTypeObject* type = Py_TYPE(self);
  byte_range_clear(&d->range);
  if (d->fields != d->inline_fields)
    PyMem_Free(d->fields);
  if (ST_FREE_LISTS && free_count < MAX_FREE && is_closed(type))
    free_list[free_count++] = d;
  else
    type->tp_free(self);
  Py_DECREF(type);
}

static DecoderObject* decoder_alloc(PyTypeObject* type) {
  DecoderObject* d = free_count && is_closed(type)
                         ? (DecoderObject*)PyObject_Init(
                               (PyObject*)free_list[--free_count], type)
                         : (DecoderObject*)type->tp_alloc(type, 0);
  if (!d)
    return NULL;
  d->range = (struct byte_range){0};
  d->fields = d->inline_fields;
  d->count = 0;
  d->capacity = INLINE_FIELDS;
  return d;
}

static bool grow(DecoderObject* d) {
  bool is_inline = d->fields == d->inline_fields;
  size_t size = d->count * sizeof *d->fields;
  struct st_field* grown =
      PyMem_Realloc(is_inline ? NULL : d->fields, 2 * size);
  if (!grown) {
    PyErr_NoMemory();
    return false;
  }
  if (is_inline)
    memcpy(grown, d->inline_fields, size);
  d->fields = grown;
  d->capacity *= 2;
  return true;
}

static bool note_fields(DecoderObject* d) {
  struct st_decoder decoder;
  st_decoder_init(&decoder, d->range.data, d->range.size);
  for (;;) {
    if (d->count == d->capacity && !grow(d))
      return false;
    if (!st_decoder_next(&decoder, &d->fields[d->count]))
      break;
    d->count++;
  }
  d->left = st_decoder_left(&decoder);
  return true;
}

/* Returns a new decoder of the bytes in a range.  Takes ownership of the range,
 * also on failure. */
static PyObject* decoder_for(PyTypeObject* type, struct byte_range range) {
  DecoderObject* d = decoder_alloc(type);
  if (!d) {
    byte_range_clear(&range);
    return NULL;
  }
  d->range = range;
  if (!note_fields(d))
    Py_CLEAR(d);
  return (PyObject*)d;
}

ST_BIND_SIGNATURE(kNewSignature, 1, "Decoder", "data");

static PyObject* new_for(PyTypeObject* type, PyObject* data) {
  struct byte_range range;
  return byte_range_from(data, &range) ? decoder_for(type, range) : NULL;
}

static PyObject* decoder_new(PyTypeObject* type, PyObject* args,
                             PyObject* kwargs) {
  PyObject* data;
  return st_bind_new_arguments(&kNewSignature, args, kwargs, &data)
             ? new_for(type, data)
             : NULL;
}

static PyObject* decoder_vectorcall(PyObject* type, PyObject* const* args,
                                    size_t nargsf, PyObject* kwnames) {
  PyObject* data;
  if (PyVectorcall_NARGS(nargsf) == 1 && !kwnames)
    return new_for((PyTypeObject*)type, args[0]);
  return st_bind_arguments(&kNewSignature, args, PyVectorcall_NARGS(nargsf),
                           kwnames, &data)
             ? new_for((PyTypeObject*)type, data)
             : NULL;
}

static const struct st_field* last_field(const DecoderObject* d,
                                         uint32_t number) {
  for (size_t i = d->count; i > 0; i--) {
    if (d->fields[i - 1].number == number)
      return &d->fields[i - 1];
  }
  return NULL;
}

/* Converts a Python int to a field number.  A number out of range becomes 0,
 * which no field has. */
static bool to_number(PyObject* value, uint32_t* number) {
  if (!PyLong_Check(value)) {
    PyErr_Format(PyExc_TypeError, "a field's number is an int, not %R",
                 (PyObject*)Py_TYPE(value));
    return false;
  }
  int overflow;
  long long n = PyLong_AsLongLongAndOverflow(value, &overflow);
  *number = overflow || n < 0 || n > UINT32_MAX ? 0 : (uint32_t)n;
  return true;
}

static PyObject* last(PyObject* self, PyObject* value) {
  uint32_t number;
  if (!to_number(value, &number))
    return NULL;
  const struct st_field* f = last_field(cast(self), number);
  return f ? decoded_field_new(&cast(self)->range, f) : Py_NewRef(Py_None);
}

static bool append_new(PyObject* list, PyObject* item) {
  bool done = item && PyList_Append(list, item) == 0;
  Py_XDECREF(item);
  return done;
}

static PyObject* all(PyObject* self, PyObject* value) {
  uint32_t number;
  if (!to_number(value, &number))
    return NULL;
  const DecoderObject* d = cast(self);
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < d->count; i++) {
    if (d->fields[i].number == number &&
        !append_new(list, decoded_field_new(&d->range, &d->fields[i])))
      Py_CLEAR(list);
  }
  return list;
}

static PyObject* iterate(PyObject* self) {
  const struct byte_range* range = &cast(self)->range;
  return decoder_new_for(byte_range_part(range, range->data, range->size));
}

static PyObject* get_bytes_left(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromSize_t(cast(self)->left);
}

static bool find_decoder(FieldObject* f) {
  PyObject* type = PyObject_CallNoArgs(f->helper);
  if (type && PyType_Check(type) && is_closed((PyTypeObject*)type)) {
    Py_XSETREF(f->decoder, (PyTypeObject*)type);
    return true;
  }
  if (type)
    PyErr_Format(PyExc_TypeError, "%R is no generated decoder", type);
  Py_XDECREF(type);
  return false;
}

static PyObject* nested(FieldObject* f, const DecoderObject* d,
                        const struct st_field* found) {
  struct byte_range part = byte_range_part(&d->range, found->data, found->size);
  if (!f->decoder && !find_decoder(f)) {
    byte_range_clear(&part);
    return NULL;
  }
  return decoder_for(f->decoder, part);
}

static PyObject* view(const DecoderObject* d, const struct st_field* found) {
  bool is_there = found->wire_type == ST_WIRE_DELIMITED;
  struct byte_range part = {is_there ? d->range.owner : NULL, found->data,
                            found->size};
  return byte_range_view(&part);
}

static PyObject* value_of(FieldObject* f, const DecoderObject* d) {
  const struct st_field* found = last_field(d, f->number);
  if (!found)
    return Py_NewRef(f->fallback);
  switch (f->kind) {
    case VALUE_MESSAGE:
      return nested(f, d, found);
    case VALUE_STRING:
      return value_string(found->data, found->size);
    case VALUE_BYTES:
      return view(d, found);
    default:
      return value_from_bits(
          f->kind, found->wire_type == ST_WIRE_DELIMITED ? 0 : found->value);
  }
}

static PyObject* field_get(PyObject* self, PyObject* decoder,
                           PyObject* Py_UNUSED(type)) {
  if (!decoder)
    return Py_NewRef(self);
  if (!PyType_IsSubtype(Py_TYPE(decoder), decoder_type)) {
    PyErr_Format(PyExc_TypeError, "an attribute of decoders, not of %R",
                 (PyObject*)Py_TYPE(decoder));
    return NULL;
  }
  return value_of((FieldObject*)self, cast(decoder));
}

static PyObject* field_new(PyTypeObject* type, PyObject* args,
                           PyObject* kwargs) {
  static char* names[] = {"number", "kind", "fallback", "helper", NULL};
  unsigned number;
  const char* kind_name;
  PyObject *fallback, *helper;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "IsOO", names, &number,
                                   &kind_name, &fallback, &helper))
    return NULL;
  enum value_kind kind = value_kind_named(kind_name);
  if (kind == VALUE_KINDS) {
    PyErr_Format(PyExc_ValueError, "there is no kind '%s'", kind_name);
    return NULL;
  }
  FieldObject* f = (FieldObject*)type->tp_alloc(type, 0);
  if (!f)
    return NULL;
  f->number = number;
  f->kind = kind;
  f->fallback = Py_NewRef(fallback);
  f->helper = Py_NewRef(helper);
  return (PyObject*)f;
}

static int field_traverse(PyObject* self, visitproc visit, void* arg) {
  FieldObject* f = (FieldObject*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(f->fallback);
  Py_VISIT(f->helper);
  Py_VISIT(f->decoder);
  return 0;
}

static void field_dealloc(PyObject* self) {
  FieldObject* f = (FieldObject*)self;
  PyObject_GC_UnTrack(self);
  Py_CLEAR(f->fallback);
  Py_CLEAR(f->helper);
  Py_CLEAR(f->decoder);
  st_bind_free(self);
}

static bool can_be_closed(const PyTypeObject* type) {
  if (PyType_IsSubtype((PyTypeObject*)type, decoder_type) &&
      type->tp_basicsize == decoder_type->tp_basicsize && !type->tp_dictoffset)
    return true;
  PyErr_Format(PyExc_ValueError,
               "%R is no subclass of IndexedMessage with empty __slots__",
               type);
  return false;
}

static PyObject* close_decoder_class(PyObject* Py_UNUSED(module),
                                     PyObject* class) {
  PyTypeObject* type = (PyTypeObject*)class;
  if (!PyType_Check(class) || !can_be_closed(type)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "%R is no class", class);
    return NULL;
  }
  type->tp_dealloc = decoder_dealloc;
  type->tp_traverse = NULL;
  type->tp_clear = NULL;
  type->tp_free = decoder_type->tp_free;
  type->tp_vectorcall = decoder_vectorcall;
  type->tp_flags &= ~(Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC);
  type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(type);
  return Py_NewRef(class);
}

static PyMethodDef kFunctions[] = {
    {"close_decoder_class", close_decoder_class, METH_O, NULL},
    {0},
};

static PyMethodDef kMethods[] = {
    {"_last", last, METH_O, NULL},
    {"_all", all, METH_O, NULL},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"bytes_left", get_bytes_left, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "A message with its fields by number."},
    {Py_tp_new, decoder_new},
    {Py_tp_dealloc, decoder_dealloc},
    {Py_tp_iter, iterate},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("IndexedMessage", DecoderObject, Py_TPFLAGS_BASETYPE, kSlots);

static PyMemberDef kFieldMembers[] = {
    {"number", T_UINT, offsetof(FieldObject, number), READONLY,
     "The field's number."},
    {0},
};

static PyType_Slot kFieldSlots[] = {
    {Py_tp_doc, "An attribute of generated decoders: a singular field."},
    {Py_tp_new, field_new},
    {Py_tp_dealloc, field_dealloc},
    {Py_tp_traverse, field_traverse},
    {Py_tp_descr_get, field_get},
    {Py_tp_members, kFieldMembers},
    {0, NULL},
};

static PyType_Spec kFieldSpec =
    ST_BIND_SPEC("DecoderField", FieldObject,
                 Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, kFieldSlots);

ST_BIND_PART(typed_decoder) {
  if (st_bind_keep_type(module, &kSpec, &decoder_type) < 0 ||
      st_bind_keep_type(module, &kFieldSpec, &field_type) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
