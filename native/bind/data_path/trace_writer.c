/* Python type TraceWriter: a sequence of packets.
 *
 * With a stalling policy, a call may wait, without the GIL.  If another thread
 * uses the writer meanwhile, it breaks the rule that one thread owns a writer.
 * A packet of the other thread is dropped and counted.  If the other thread
 * closes the writer, the close is deferred until the owner's call returns.
 */
#include "bind/data_path/trace_writer.h"

#include <structmember.h>

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/data_path/arbiter.h"
#include "core/decoder.h"

enum writer_state { CLOSED, OPEN, CLOSING };

struct trace_writer {
  PyObject_HEAD
  PyObject* arbiter;
  enum writer_state state;
  bool is_busy;
  /* The number of packets that were dropped because the writer was closed or
   * busy. */
  uint64_t refused;
  struct st_trace_writer writer;
};

static void writer_dealloc(PyObject* object);

struct st_trace_writer* st_bind_trace_writer(PyObject* object) {
  return st_bind_check(object, writer_dealloc, "TraceWriter")
             ? &((struct trace_writer*)object)->writer
             : NULL;
}

static PyObject* writer_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 2, "TraceWriter", "arbiter", "target_buffer",
                    "policy");
  PyObject* in[3];
  uint32_t target;
  int64_t policy = ST_DROP;
  struct st_arbiter* arbiter;
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !(arbiter = st_bind_arbiter(in[0])) ||
      !st_bind_target_buffer(in[1], &target) ||
      !st_bind_integer(in[2], "policy", ST_STALL, ST_STALL_THEN_DROP, &policy))
    return NULL;
  struct trace_writer* self =
      (struct trace_writer*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  Py_INCREF(in[0]);
  self->arbiter = in[0];
  /* If no writer id is free, the writer is closed from the start, and counts
   * each packet as refused. */
  if (st_trace_writer_init(&self->writer, arbiter, target,
                           (enum st_exhausted_policy)policy))
    self->state = OPEN;
  return (PyObject*)self;
}

static void close_writer(struct trace_writer* self) {
  self->state = CLOSED;
  st_trace_writer_destroy(&self->writer);
}

static void writer_dealloc(PyObject* object) {
  struct trace_writer* self = (struct trace_writer*)object;
  if (self->state != CLOSED)
    close_writer(self);
  Py_XDECREF(self->arbiter);
  st_bind_free(object);
}

/* Marks the writer as busy.  Returns false if the writer is closed or already
 * busy. */
static bool enter(struct trace_writer* self) {
  if (self->state != OPEN || self->is_busy)
    return false;
  self->is_busy = true;
  return true;
}

static void leave(struct trace_writer* self) {
  self->is_busy = false;
  if (self->state == CLOSING)
    close_writer(self);
}

bool st_bind_trace_writer_append(PyObject* object,
                                 const struct st_iovec* pieces, size_t count) {
  struct trace_writer* self = (struct trace_writer*)object;
  if (!enter(self)) {
    self->refused++;
    return false;
  }
  bool written = st_trace_writer_append(&self->writer, pieces, count);
  leave(self);
  return written;
}

static PyObject* writer_write(PyObject* object, PyObject* packet) {
  Py_buffer bytes;
  if (!st_bind_bytes(packet, "packet", &bytes))
    return NULL;
  struct st_iovec piece = {bytes.buf, (size_t)bytes.len};
  bool written = st_bind_trace_writer_append(object, &piece, 1);
  PyBuffer_Release(&bytes);
  return PyBool_FromLong(written);
}

/* Appends packets that are encoded as a trace, until one is malformed. */
static void append_all(struct trace_writer* self, const uint8_t* at,
                       const uint8_t* end) {
  struct st_decoder d;
  struct st_field packet;
  st_decoder_init(&d, at, (size_t)(end - at));
  while (st_decoder_next(&d, &packet) && packet.data) {
    struct st_iovec piece = {packet.data, packet.size};
    st_trace_writer_append(&self->writer, &piece, 1);
  }
}

static PyObject* writer_write_all(PyObject* object, PyObject* packets) {
  struct trace_writer* self = (struct trace_writer*)object;
  Py_buffer bytes;
  if (!st_bind_bytes(packets, "packets", &bytes))
    return NULL;
  if (enter(self)) {
    append_all(self, bytes.buf, (const uint8_t*)bytes.buf + bytes.len);
    leave(self);
  } else {
    self->refused++;
  }
  PyBuffer_Release(&bytes);
  Py_RETURN_NONE;
}

bool st_bind_is_trace_writer(PyObject* object) {
  return PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) ==
         (void*)writer_dealloc;
}

struct st_message* st_bind_trace_writer_begin(PyObject* object) {
  struct trace_writer* self = (struct trace_writer*)object;
  return enter(self) ? st_trace_writer_begin_packet(&self->writer) : NULL;
}

void st_bind_trace_writer_end(PyObject* object) {
  struct trace_writer* self = (struct trace_writer*)object;
  st_trace_writer_end_packet(&self->writer);
  leave(self);
}

static PyObject* writer_flush(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct trace_writer* self = (struct trace_writer*)object;
  if (enter(self)) {
    st_trace_writer_flush(&self->writer);
    leave(self);
  }
  Py_RETURN_NONE;
}

static PyObject* writer_close(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct trace_writer* self = (struct trace_writer*)object;
  if (self->state == OPEN)
    self->state = CLOSING;
  if (self->state == CLOSING && !self->is_busy)
    close_writer(self);
  Py_RETURN_NONE;
}

static PyObject* get_packets_dropped(PyObject* object,
                                     void* Py_UNUSED(closure)) {
  const struct trace_writer* self = (struct trace_writer*)object;
  return PyLong_FromUnsignedLongLong(self->writer.packets_dropped +
                                     self->refused);
}

static PyMethodDef kMethods[] = {
    {"write", writer_write, METH_O, NULL},
    {"write_all", writer_write_all, METH_O, NULL},
    {"flush", writer_flush, METH_NOARGS, NULL},
    {"close", writer_close, METH_NOARGS, NULL},
    {0},
};

#define MEMBER(name, type) \
  { #name, type, offsetof(struct trace_writer, writer.name), READONLY, NULL }
static PyMemberDef kMembers[] = {
    MEMBER(writer_id, T_USHORT),
    MEMBER(chunk_id, T_UINT),
    MEMBER(packets_written, T_ULONGLONG),
    MEMBER(drop_count, T_UINT),
    {0},
};
#undef MEMBER

static PyGetSetDef kProperties[] = {
    {"packets_dropped", get_packets_dropped, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, writer_new},
    {Py_tp_dealloc, writer_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {Py_tp_getset, kProperties},
    {Py_tp_doc, "Writes the packets of one thread to one buffer."},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("TraceWriter", struct trace_writer,
                                        Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(trace_writer) {
  if (PyModule_AddIntConstant(module, "STALL", ST_STALL) < 0 ||
      PyModule_AddIntConstant(module, "DROP", ST_DROP) < 0 ||
      PyModule_AddIntConstant(module, "STALL_THEN_DROP", ST_STALL_THEN_DROP) <
          0)
    return -1;
  return st_bind_add_type(module, &kSpec);
}
