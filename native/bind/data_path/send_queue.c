#include "bind/data_path/send_queue.h"

#include "bind/common/arguments.h"
#include "bind/common/types.h"

struct send_queue {
  PyObject_HEAD
  bool is_initialized;
  struct st_send_queue queue;
};

static void queue_dealloc(PyObject* object);

struct st_send_queue* st_bind_send_queue(PyObject* object) {
  return st_bind_check(object, queue_dealloc, "SendQueue")
             ? &((struct send_queue*)object)->queue
             : NULL;
}

static struct st_send_queue* queue_of(PyObject* self) {
  return &((struct send_queue*)self)->queue;
}

static PyObject* queue_new(PyTypeObject* type, PyObject* args,
                           PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 1, "SendQueue", "fd", "limit");
  PyObject* in[2];
  int fd;
  int64_t limit = ST_SEND_QUEUE_CAPACITY;
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !st_bind_fd(in[0], "fd", false, &fd) ||
      !st_bind_integer(in[1], "limit", 1, PY_SSIZE_T_MAX / 4, &limit))
    return NULL;
  struct send_queue* self = (struct send_queue*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  self->is_initialized = st_send_queue_init(&self->queue, fd, (size_t)limit);
  if (!self->is_initialized) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return (PyObject*)self;
}

static void queue_dealloc(PyObject* object) {
  struct send_queue* self = (struct send_queue*)object;
  if (self->is_initialized)
    st_send_queue_destroy(&self->queue);
  st_bind_free(object);
}

static bool check_frame_size(Py_ssize_t size, Py_ssize_t max,
                             const char* what) {
  if (size <= max)
    return true;
  PyErr_Format(PyExc_ValueError,
               "%s of %zd bytes is too long for a frame; split it (at most "
               "%zd)",
               what, size, max);
  return false;
}

static PyObject* queue_push(PyObject* self, PyObject* const* args,
                            Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 1, "push", "frame", "fd");
  PyObject* in[2];
  int fd;
  Py_buffer frame;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_fd(in[1], "fd", true, &fd) ||
      !st_bind_bytes(in[0], "frame", &frame))
    return NULL;
  PyObject* result = NULL;
  if (check_frame_size(frame.len, ST_IPC_MAX_FRAME, "a frame"))
    result = PyBool_FromLong(
        st_send_queue_push(queue_of(self), frame.buf, (size_t)frame.len, fd));
  PyBuffer_Release(&frame);
  return result;
}

static PyObject* queue_invoke(PyObject* self, PyObject* const* args,
                              Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 4, "invoke", "service_id", "method_id", "args",
                    "drop_reply", "fd");
  PyObject* in[5];
  int64_t service, method;
  int fd;
  Py_buffer bytes;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[0], "service_id", 0, UINT32_MAX, &service) ||
      !st_bind_integer(in[1], "method_id", 0, UINT32_MAX, &method) ||
      !st_bind_fd(in[4], "fd", true, &fd))
    return NULL;
  int drop_reply = PyObject_IsTrue(in[3]);
  if (drop_reply < 0 || !st_bind_bytes(in[2], "args", &bytes))
    return NULL;
  PyObject* result = NULL;
  if (check_frame_size(bytes.len, ST_IPC_MAX_FRAME - ST_IPC_INVOKE_OVERHEAD,
                       "a request"))
    result = PyLong_FromUnsignedLongLong(st_send_queue_invoke(
        queue_of(self), (uint32_t)service, (uint32_t)method, bytes.buf,
        (size_t)bytes.len, drop_reply, fd));
  PyBuffer_Release(&bytes);
  return result;
}

static PyObject* queue_next_request_id(PyObject* self,
                                       PyObject* Py_UNUSED(none)) {
  return PyLong_FromUnsignedLongLong(
      st_send_queue_next_request_id(queue_of(self)));
}

/* Releases the GIL, because the drain may wait for the mutexes of the queue. */
static PyObject* queue_drain(PyObject* self, PyObject* Py_UNUSED(none)) {
  Py_BEGIN_ALLOW_THREADS
  st_send_queue_drain(queue_of(self));
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* get_pending(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromSize_t(st_send_queue_pending(queue_of(self)));
}

static PyObject* get_broken(PyObject* self, void* Py_UNUSED(closure)) {
  return PyBool_FromLong(atomic_load(&queue_of(self)->broken));
}

static PyObject* get_frames_refused(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromUnsignedLongLong(
      atomic_load(&queue_of(self)->frames_refused));
}

static PyMethodDef kMethods[] = {
    ST_BIND_KEYWORDS("push", queue_push, NULL),
    ST_BIND_KEYWORDS("invoke", queue_invoke, NULL),
    {"next_request_id", queue_next_request_id, METH_NOARGS, NULL},
    {"drain", queue_drain, METH_NOARGS, NULL},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"pending", get_pending, NULL, NULL, NULL},
    {"broken", get_broken, NULL, NULL, NULL},
    {"frames_refused", get_frames_refused, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, queue_new},
    {Py_tp_dealloc, queue_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_doc, "Sends all bytes of one connected socket."},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("SendQueue", struct send_queue,
                                        Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(send_queue) {
  return st_bind_add_type(module, &kSpec);
}
