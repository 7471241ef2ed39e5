#include "bind/protozero/byte_range.h"

#include "bind/common/arguments.h"

typedef struct {
  PyObject_HEAD
  Py_buffer buffer;
} OwnerObject;

static PyTypeObject* owner_type;

static void owner_dealloc(PyObject* self) {
  PyBuffer_Release(&((OwnerObject*)self)->buffer);
  st_bind_free(self);
}

static int owner_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Py_buffer* held = &((OwnerObject*)self)->buffer;
  return PyBuffer_FillInfo(view, self, held->buf, held->len, 1, flags);
}

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "Holds a buffer that decoders read."},
    {Py_tp_dealloc, owner_dealloc},
    {Py_bf_getbuffer, owner_buffer},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC(
    "BufferOwner", OwnerObject,
    Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(byte_range) {
  owner_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  return owner_type ? 0 : -1;
}

bool byte_range_from(PyObject* object, struct byte_range* out) {
  if (PyBytes_CheckExact(object)) {
    *out = (struct byte_range){Py_NewRef(object),
                               (const uint8_t*)PyBytes_AS_STRING(object),
                               (size_t)PyBytes_GET_SIZE(object)};
    return true;
  }
  OwnerObject* owner = (OwnerObject*)owner_type->tp_alloc(owner_type, 0);
  if (!owner)
    return false;
  if (!st_bind_bytes(object, "data", &owner->buffer)) {
    Py_DECREF(owner);
    return false;
  }
  *out = (struct byte_range){(PyObject*)owner, owner->buffer.buf,
                             (size_t)owner->buffer.len};
  return true;
}

static PyObject* view_of(PyObject* owner) {
  return owner ? PyMemoryView_FromObject(owner)
               : PyMemoryView_FromMemory("", 0, PyBUF_READ);
}

PyObject* byte_range_view(const struct byte_range* range) {
  PyObject* whole = view_of(range->owner);
  if (!whole || !range->owner)
    return whole;
  const uint8_t* begin = PyMemoryView_GET_BUFFER(whole)->buf;
  Py_ssize_t start = range->data - begin;
  PyObject* part =
      PySequence_GetSlice(whole, start, start + (Py_ssize_t)range->size);
  Py_DECREF(whole);
  return part;
}
