/* Fields of generated writers: the methods `set_x` and `add_x`.
 *
 * A field is a small callable that knows its tag, made ready, and the kind of
 * its values.  Its class is that of a method: `writer.set_x(1)` calls it with
 * the writer and the value, without making anything in between.
 *
 * Values of the kind's exact Python type are encoded at once.  Others go
 * through `check`, a Python function that makes them so or says what is wrong
 * with them; it may run anything, so it comes before the message is touched. */
#include "message_value.h"

#include <structmember.h>

#include "message_writer.h"
#include "packed.h"

typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  PyTypeObject* owner;
  PyObject* name;
  PyObject* helper;     /* check(value); of a message: its writer, by call */
  PyTypeObject* writer; /* of a message, once it was needed */
  uint32_t number;
  enum value_kind kind;
  uint64_t small_max; /* ints from 0 to this are their own varints */
  uint8_t tag_size;
  uint8_t tag[8]; /* copied whole */
} FieldObject;

static PyTypeObject* field_type;

/* --- arguments --- */

static bool check_call(const FieldObject* f, PyObject* const* args,
                       Py_ssize_t got, Py_ssize_t count, PyObject* kwnames) {
  bool has_self = got > 0 && PyType_IsSubtype(Py_TYPE(args[0]), f->owner);
  if (has_self && got == count && !(kwnames && PyTuple_GET_SIZE(kwnames)))
    return true;
  if (!has_self)
    PyErr_Format(PyExc_TypeError, "%U is a method of %R", f->name, f->owner);
  else
    PyErr_Format(PyExc_TypeError, "%U() takes %s, got %zd arguments", f->name,
                 count > 1 ? "one value by position" : "no value", got - 1);
  return false;
}

/* The writer that a field is called with; NULL: TypeError set. */
static inline struct message_writer* receiver(const FieldObject* f,
                                              PyObject* const* args,
                                              size_t nargsf, PyObject* kwnames,
                                              Py_ssize_t count) {
  Py_ssize_t got = PyVectorcall_NARGS(nargsf);
  bool is_usual = got == count && Py_TYPE(args[0]) == f->owner && !kwnames;
  if (!is_usual && !check_call(f, args, got, count, kwnames))
    return NULL;
  return (struct message_writer*)args[0];
}

/* --- numbers --- */

static bool checked_to_bits(const FieldObject* f, PyObject* value,
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

static inline bool to_bits(const FieldObject* f, PyObject* value,
                           uint64_t* bits) {
  return value_to_bits(f->kind, value, bits) || checked_to_bits(f, value, bits);
}

static PyObject* append_number(struct message_writer* w, const uint8_t* bytes,
                               const uint8_t* end) {
  if (!message_writer_append(w, bytes, (size_t)(end - bytes)))
    return NULL;
  Py_RETURN_NONE;
}

enum { NUMBER_ROOM = 16 }; /* the whole tag array, and a varint */

/* Tag and value, at p. */
static inline uint8_t* put_varint(const FieldObject* f, uint8_t* p,
                                  uint64_t bits) {
  memcpy(p, f->tag, sizeof f->tag);
  return st_put_varint(p + f->tag_size, bits);
}

static PyObject* set_varint(PyObject* self, PyObject* const* args,
                            size_t nargsf, PyObject* kwnames) {
  const FieldObject* f = (FieldObject*)self;
  struct message_writer* w = receiver(f, args, nargsf, kwnames, 2);
  if (!w)
    return NULL;
  uint64_t bits;
  bool is_small = value_small_int(args[1], &bits) && bits <= f->small_max;
  if (!is_small && !to_bits(f, args[1], &bits))
    return NULL;
  uint8_t* p = message_writer_room(w, NUMBER_ROOM);
  if (p) {
    st_message_advance(&w->at->message, put_varint(f, p, bits));
    Py_RETURN_NONE;
  }
  uint8_t bytes[NUMBER_ROOM];
  return append_number(w, bytes, put_varint(f, bytes, bits));
}

static inline uint8_t* put_fixed(const FieldObject* f, uint8_t* p,
                                 uint64_t bits) {
  memcpy(p, f->tag, sizeof f->tag);
  memcpy(p + f->tag_size, &bits, sizeof bits);
  bool is_short = value_wire_type(f->kind) == ST_WIRE_FIXED32;
  return p + f->tag_size + (is_short ? 4 : 8);
}

static PyObject* set_fixed(PyObject* self, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  const FieldObject* f = (FieldObject*)self;
  struct message_writer* w = receiver(f, args, nargsf, kwnames, 2);
  uint64_t bits;
  if (!w || !to_bits(f, args[1], &bits))
    return NULL;
  uint8_t* p = message_writer_room(w, NUMBER_ROOM);
  if (p) {
    st_message_advance(&w->at->message, put_fixed(f, p, bits));
    Py_RETURN_NONE;
  }
  uint8_t bytes[NUMBER_ROOM];
  return append_number(w, bytes, put_fixed(f, bytes, bits));
}

/* --- strings and bytes --- */

/* Surrogates make strings that only this one can encode. */
static PyObject* set_checked_string(const FieldObject* f,
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
  return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject* set_string(PyObject* self, PyObject* const* args,
                            size_t nargsf, PyObject* kwnames) {
  const FieldObject* f = (FieldObject*)self;
  struct message_writer* w = receiver(f, args, nargsf, kwnames, 2);
  if (!w)
    return NULL;
  Py_ssize_t size;
  const char* utf8 = PyUnicode_CheckExact(args[1])
                         ? PyUnicode_AsUTF8AndSize(args[1], &size)
                         : NULL;
  if (!utf8) {
    PyErr_Clear();
    return set_checked_string(f, w, args[1]);
  }
  if (!message_writer_append_bytes(w, f->number, utf8, (size_t)size))
    return NULL;
  Py_RETURN_NONE;
}

static bool set_checked_bytes(const FieldObject* f, struct message_writer* w,
                              PyObject* value) {
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

static PyObject* set_bytes(PyObject* self, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  const FieldObject* f = (FieldObject*)self;
  struct message_writer* w = receiver(f, args, nargsf, kwnames, 2);
  if (!w)
    return NULL;
  PyObject* value = args[1];
  bool done =
      PyBytes_CheckExact(value)
          ? message_writer_append_bytes(w, f->number, PyBytes_AS_STRING(value),
                                        (size_t)PyBytes_GET_SIZE(value))
          : set_checked_bytes(f, w, value);
  return done ? Py_NewRef(Py_None) : NULL;
}

/* --- packed --- */

static bool add_element(const FieldObject* f, struct st_packed* packed,
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

/* A check may change the list that it is called for. */
static bool add_elements(const FieldObject* f, struct st_packed* packed,
                         PyObject* values) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
    PyObject* value = Py_NewRef(PySequence_Fast_GET_ITEM(values, i));
    bool added = add_element(f, packed, value);
    Py_DECREF(value);
    if (!added)
      return false;
  }
  return true;
}

static PyObject* set_packed(PyObject* self, PyObject* const* args,
                            size_t nargsf, PyObject* kwnames) {
  const FieldObject* f = (FieldObject*)self;
  struct message_writer* w = receiver(f, args, nargsf, kwnames, 2);
  if (!w)
    return NULL;
  bool is_text = PyUnicode_Check(args[1]) || PyBytes_Check(args[1]);
  PyObject* values = is_text ? PyObject_CallOneArg(f->helper, args[1])
                             : PySequence_Fast(args[1], "expected a list");
  if (!values)
    return NULL;
  struct st_packed packed;
  st_packed_init(&packed);
  bool done = add_elements(f, &packed, values) &&
              message_writer_append_bytes(w, f->number, packed.begin,
                                          st_packed_size(&packed));
  st_packed_free(&packed);
  Py_DECREF(values);
  return done ? Py_NewRef(Py_None) : NULL;
}

/* --- messages --- */

static bool find_writer(FieldObject* f) {
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

static PyObject* open_message(PyObject* self, PyObject* const* args,
                              size_t nargsf, PyObject* kwnames) {
  FieldObject* f = (FieldObject*)self;
  struct message_writer* w = receiver(f, args, nargsf, kwnames, 1);
  if (!w || (!f->writer && !find_writer(f)))
    return NULL;
  return message_writer_open(f->writer, w, f->number);
}

/* --- the type --- */

static PyObject* bind_to(PyObject* self, PyObject* instance,
                         PyObject* Py_UNUSED(type)) {
  return instance ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static int field_traverse(PyObject* self, visitproc visit, void* arg) {
  FieldObject* f = (FieldObject*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(f->owner);
  Py_VISIT(f->helper);
  Py_VISIT(f->writer);
  return 0;
}

static int field_clear(PyObject* self) {
  FieldObject* f = (FieldObject*)self;
  Py_CLEAR(f->helper);
  Py_CLEAR(f->writer);
  return 0;
}

static void field_dealloc(PyObject* self) {
  FieldObject* f = (FieldObject*)self;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  field_clear(self);
  Py_CLEAR(f->owner);
  Py_CLEAR(f->name);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* field_repr(PyObject* self) {
  FieldObject* f = (FieldObject*)self;
  return PyUnicode_FromFormat("<method %U of %s>", f->name, f->owner->tp_name);
}

static PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FieldObject, call), READONLY,
     NULL},
    {"__name__", T_OBJECT, offsetof(FieldObject, name), READONLY, NULL},
    {"__objclass__", T_OBJECT, offsetof(FieldObject, owner), READONLY, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "The method of a generated writer that appends one field."},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, bind_to},
    {Py_tp_traverse, field_traverse},
    {Py_tp_clear, field_clear},
    {Py_tp_dealloc, field_dealloc},
    {Py_tp_repr, field_repr},
    {Py_tp_members, kMembers},
    {0, NULL},
};

static PyType_Spec kSpec = {
    .name = "stretto._native.MessageField",
    .basicsize = sizeof(FieldObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = kSlots,
};

/* --- making writers --- */

static vectorcallfunc call_for(enum value_kind kind, bool is_packed) {
  if (is_packed)
    return set_packed;
  switch (kind) {
    case VALUE_STRING:
      return set_string;
    case VALUE_BYTES:
      return set_bytes;
    case VALUE_MESSAGE:
      return open_message;
    default:
      return value_wire_type(kind) == ST_WIRE_VARINT ? set_varint : set_fixed;
  }
}

static uint64_t small_max(enum value_kind kind) {
  bool is_plain = value_wire_type(kind) == ST_WIRE_VARINT &&
                  kind != VALUE_SINT32 && kind != VALUE_SINT64 &&
                  kind != VALUE_BOOL;
  return is_plain ? value_max(kind) : 0;
}

/* From (method, number, kind, is packed, helper). */
static PyObject* new_field(PyTypeObject* owner, PyObject* row) {
  PyObject *name, *helper;
  unsigned number;
  const char* kind_name;
  int is_packed;
  if (!PyArg_ParseTuple(row, "UIspO", &name, &number, &kind_name, &is_packed,
                        &helper))
    return NULL;
  enum value_kind kind = value_kind_named(kind_name);
  if (kind == VALUE_KINDS) {
    PyErr_Format(PyExc_ValueError, "there is no kind '%s'", kind_name);
    return NULL;
  }
  FieldObject* f = (FieldObject*)field_type->tp_alloc(field_type, 0);
  if (!f)
    return NULL;
  f->call = call_for(kind, is_packed);
  f->owner = (PyTypeObject*)Py_NewRef((PyObject*)owner);
  f->name = Py_NewRef(name);
  f->helper = Py_NewRef(helper);
  f->number = number;
  f->kind = kind;
  f->small_max = small_max(kind);
  uint8_t* end = st_put_tag(f->tag, number, value_wire_type(kind));
  f->tag_size = (uint8_t)(end - f->tag);
  return (PyObject*)f;
}

static bool add_fields(PyTypeObject* type, PyObject* rows) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
    PyObject* field = new_field(type, PyList_GET_ITEM(rows, i));
    if (!field)
      return false;
    int result =
        PyObject_SetAttr((PyObject*)type, ((FieldObject*)field)->name, field);
    Py_DECREF(field);
    if (result < 0)
      return false;
  }
  return true;
}

static PyObject* make_writer_class(PyObject* Py_UNUSED(module),
                                   PyObject* args) {
  const char* name; /* with its module */
  PyObject* rows;
  if (!PyArg_ParseTuple(args, "sO!", &name, &PyList_Type, &rows))
    return NULL;
  PyType_Slot slots[] = {{0, NULL}};
  PyType_Spec spec = {.name = name,
                      .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      .slots = slots};
  PyTypeObject* type = (PyTypeObject*)PyType_FromSpecWithBases(
      &spec, (PyObject*)message_writer_type);
  if (!type)
    return NULL;
  type->tp_dealloc = message_writer_type->tp_dealloc;
  message_writer_finish_type(type);
  if (!add_fields(type, rows))
    Py_CLEAR(type);
  return (PyObject*)type;
}

static PyMethodDef kFunctions[] = {
    {"make_writer_class", make_writer_class, METH_VARARGS,
     "Make a subclass of MessageWriter from rows (method, number, kind, is "
     "packed, helper)."},
    {0},
};

int add_message_field_type(PyObject* module) {
  field_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  return field_type ? PyModule_AddFunctions(module, kFunctions) : -1;
}
