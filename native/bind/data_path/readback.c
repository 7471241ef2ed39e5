/* The Python type Readback: reads packets from trace buffers, as trace bytes.
 *
 * It keeps a reference to its BufferTable and reads under the table's reader
 * lock, without the GIL.
 */
#include "core/readback.h"
#include <stdlib.h>
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/data_path/buffer_table.h"

/* Scratch memory up to this size is kept from one read to the next. */
enum { MAX_KEPT_BYTES = 4 << 20 };

struct readback {
  PyObject_HEAD
  /* The BufferTable.  Its reader lock guards the members below this one. */
  PyObject* table;
  struct st_readback* readback;
  struct st_bytes scratch;
};

static PyObject* readback_new(PyTypeObject* type, PyObject* args,
                              PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 1, "Readback", "table", "machine_id");
  PyObject* in[2];
  int64_t machine_id = 0;
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !st_bind_buffer_table(in[0]) ||
      !st_bind_integer(in[1], "machine_id", 0, UINT32_MAX, &machine_id))
    return NULL;
  struct readback* self = (struct readback*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  Py_INCREF(in[0]);
  self->table = in[0];
  self->readback = st_readback_create((uint32_t)machine_id);
  if (!self->readback) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return (PyObject*)self;
}

static void readback_dealloc(PyObject* object) {
  struct readback* self = (struct readback*)object;
  if (self->readback)
    st_readback_destroy(self->readback);
  free(self->scratch.data);
  Py_XDECREF(self->table);
  st_bind_free(object);
}

static PyObject* readback_begin(PyObject* object, PyObject* buffer_id) {
  struct readback* self = (struct readback*)object;
  uint16_t id;
  struct st_trace_buffer* buffer =
      st_bind_acquire_buffer(self->table, buffer_id, &id);
  if (!buffer)
    return NULL;
  st_bind_table_lock_reader(self->table);
  st_trace_buffer_begin_read(buffer);
  st_bind_table_unlock_reader(self->table);
  st_bind_release_buffer(self->table, id);
  Py_RETURN_NONE;
}

static PyObject* take_scratch(struct readback* self) {
  struct st_bytes* scratch = &self->scratch;
  PyObject* bytes = PyBytes_FromStringAndSize((char*)scratch->data,
                                              (Py_ssize_t)scratch->size);
  if (scratch->capacity > MAX_KEPT_BYTES) {
    free(scratch->data);
    *scratch = (struct st_bytes){0};
  }
  return bytes;
}

/* This thread keeps the reader lock while it waits for the GIL.  No deadlock
 * can follow, because other threads release the GIL before they wait for the
 * reader lock. */
static PyObject* readback_read(PyObject* object, PyObject* const* args,
                               Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "read", "buffer_id", "limit");
  struct readback* self = (struct readback*)object;
  PyObject* in[2];
  uint16_t id;
  int64_t limit;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[1], "limit", 1, PY_SSIZE_T_MAX, &limit))
    return NULL;
  struct st_trace_buffer* buffer =
      st_bind_acquire_buffer(self->table, in[0], &id);
  if (!buffer)
    return NULL;
  bool has_more;
  st_bind_table_lock_reader(self->table);
  self->scratch.size = 0;
  Py_BEGIN_ALLOW_THREADS
  has_more =
      st_readback_run(self->readback, buffer, &self->scratch, (size_t)limit);
  Py_END_ALLOW_THREADS
  PyObject* bytes = take_scratch(self);
  st_bind_table_unlock_reader(self->table);
  st_bind_release_buffer(self->table, id);
  return bytes ? Py_BuildValue("NO", bytes, has_more ? Py_True : Py_False)
               : NULL;
}

static PyObject* readback_sequence_id(PyObject* object, PyObject* const* args,
                                      Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "sequence_id", "producer_id", "writer_id");
  struct readback* self = (struct readback*)object;
  PyObject* in[2];
  uint16_t producer;
  int64_t writer; /* The writer id of a chunk; 0 if the chunk is malformed. */
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_id16(in[0], "producer_id", &producer) ||
      !st_bind_integer(in[1], "writer_id", 0, UINT16_MAX, &writer))
    return NULL;
  uint32_t id;
  st_bind_table_lock_reader(self->table);
  id = st_readback_sequence_id(self->readback, producer, (uint16_t)writer);
  st_bind_table_unlock_reader(self->table);
  return PyLong_FromUnsignedLong(id);
}

static PyObject* readback_copy(PyObject* object, PyObject* Py_UNUSED(unused)) {
  struct readback* self = (struct readback*)object;
  struct readback* copy =
      (struct readback*)PyType_GenericAlloc(Py_TYPE(object), 0);
  if (!copy)
    return NULL;
  Py_INCREF(self->table);
  copy->table = self->table;
  st_bind_table_lock_reader(self->table);
  copy->readback = st_readback_copy(self->readback);
  st_bind_table_unlock_reader(self->table);
  if (!copy->readback) {
    Py_DECREF(copy);
    return PyErr_NoMemory();
  }
  return (PyObject*)copy;
}

static PyObject* count_of(struct readback* self,
                          uint64_t (*get)(const struct st_readback*)) {
  uint64_t value;
  st_bind_table_lock_reader(self->table);
  value = get(self->readback);
  st_bind_table_unlock_reader(self->table);
  return PyLong_FromUnsignedLongLong(value);
}

static PyObject* get_packets(PyObject* self, void* Py_UNUSED(closure)) {
  return count_of((struct readback*)self, st_readback_packets);
}

static PyObject* get_invalid_packets(PyObject* self, void* Py_UNUSED(closure)) {
  return count_of((struct readback*)self, st_readback_invalid_packets);
}

static PyMethodDef kMethods[] = {
    {"begin", readback_begin, METH_O, NULL},
    ST_BIND_KEYWORDS("read", readback_read, NULL),
    ST_BIND_KEYWORDS("sequence_id", readback_sequence_id, NULL),
    {"copy", readback_copy, METH_NOARGS, NULL},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"packets", get_packets, NULL, NULL, NULL},
    {"invalid_packets", get_invalid_packets, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, readback_new},
    {Py_tp_dealloc, readback_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_doc,
     "Reads a session's buffers; holds its sequence ids and counters."},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("Readback", struct readback, Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(readback) {
  return st_bind_add_type(module, &kSpec);
}
