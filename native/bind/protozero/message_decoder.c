/* The Python type Decoder: iterates the fields of a message in place.
 *
 * A decoder keeps the bytes alive and copies none of them.
 */
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/protozero/decoded_field.h"
#include "bind/protozero/decoder_object.h"

static struct decoder_object* cast(PyObject* self) {
  return (struct decoder_object*)self;
}

static PyObject* decoder_new(PyTypeObject* Py_UNUSED(type), PyObject* args,
                             PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 1, "Decoder", "data");
  PyObject* data;
  struct byte_range range;
  if (!st_bind_new_arguments(&signature, args, kwargs, &data) ||
      !byte_range_from(data, &range))
    return NULL;
  return decoder_new_for(range);
}

static void decoder_dealloc(PyObject* self) {
  byte_range_clear(&cast(self)->range);
  st_bind_free(self);
}

static PyObject* decoder_next(PyObject* self) {
  struct st_field field;
  return st_decoder_next(&cast(self)->decoder, &field)
             ? decoded_field_new(&cast(self)->range, &field)
             : NULL;
}

static PyObject* find(PyObject* self, PyObject* number) {
  int64_t wanted = 0;
  if (!st_bind_integer(number, "number", 0, UINT32_MAX, &wanted))
    return NULL;
  const struct byte_range* range = &cast(self)->range;
  struct st_decoder decoder;
  struct st_field field;
  st_decoder_init(&decoder, range->data, range->size);
  while (st_decoder_next(&decoder, &field)) {
    if (field.number == wanted)
      return decoded_field_new(range, &field);
  }
  Py_RETURN_NONE;
}

static PyObject* get_bytes_left(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromSize_t(st_decoder_left(&cast(self)->decoder));
}

/* Sets the exception for the malformed field at which this decoder stopped. The
 * Python decoder parses the field again, because its error messages are
 * detailed. */
static void explain(const struct decoder_object* d) {
  PyObject* wire = PyImport_ImportModule("stretto.protozero.wire");
  PyObject* view = byte_range_view(&d->range);
  if (wire && view) {
    Py_ssize_t size = (Py_ssize_t)d->range.size;
    Py_ssize_t position = size - (Py_ssize_t)st_decoder_left(&d->decoder);
    PyObject* field =
        PyObject_CallMethod(wire, "read_field", "Onn", view, position, size);
    Py_XDECREF(field);
  }
  Py_XDECREF(view);
  Py_XDECREF(wire);
}

static PyObject* get_error(PyObject* self, void* Py_UNUSED(closure)) {
  struct st_decoder decoder = cast(self)->decoder;
  struct st_field field;
  if (!st_decoder_left(&decoder) || st_decoder_next(&decoder, &field) ||
      !st_decoder_left(&decoder))
    Py_RETURN_NONE;
  explain(cast(self));
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return error ? error : Py_NewRef(Py_None);
}

static PyMethodDef kMethods[] = {
    {"find", find, METH_O,
     "The first field with a number, from the start of the message, or None."},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"bytes_left", get_bytes_left, NULL,
     "Bytes that were not read; after iterating, more than 0 means malformed.",
     NULL},
    {"error", get_error, NULL, "Why iteration stops before the end, or None.",
     NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "Iterates the fields of one message, once."},
    {Py_tp_new, decoder_new},
    {Py_tp_dealloc, decoder_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, decoder_next},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("Decoder", struct decoder_object,
                                        Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(message_decoder) {
  return st_bind_keep_type(module, &kSpec, &st_decoder_type);
}
