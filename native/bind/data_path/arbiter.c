/* Python type Arbiter: a producer's shared memory, and the sink for its chunks.
 *
 * Fork.  The child's copy of the arbiter is disabled.  Memory that is shared
 * with a service is replaced in the child by private zeroed memory at the same
 * address: writers that still point into it neither crash nor change the
 * parent's chunks.
 */
#include "bind/data_path/arbiter.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/data_path/producer_endpoint.h"
#include "bind/data_path/send_queue.h"
#include "bind/data_path/shm_mapping.h"
#include "core/fork_guard.h"

#include "core/commit_batch.h"
#include "core/loss_marks.h"

struct arbiter {
  PyObject_HEAD
  /* The sink, a ProducerEndpointCore or a SendQueue.  None if the arbiter is
   * unbound. */
  PyObject* sink;
  bool is_initialized;
  bool has_batch;
  struct st_arbiter arbiter;
  /* The commit batch, which is used only over IPC. */
  struct st_commit_batch batch;
  /* The mapping of the shared memory. It is zero if service and producer are in
   * the same process. */
  struct st_shm mapping;
  struct st_fork_entry fork;
};

static void arbiter_dealloc(PyObject* object);

struct st_arbiter* st_bind_arbiter(PyObject* object) {
  return st_bind_check(object, arbiter_dealloc, "Arbiter")
             ? &((struct arbiter*)object)->arbiter
             : NULL;
}

static struct st_arbiter* arbiter_of(PyObject* self) {
  return &((struct arbiter*)self)->arbiter;
}

/* The wait hooks: they release the GIL, unless the thread is ending and has no
 * GIL. */

static void* wait_begin(void) {
  return PyGILState_Check() ? PyEval_SaveThread() : NULL;
}

static void wait_end(void* thread_state) {
  if (thread_state)
    PyEval_RestoreThread(thread_state);
}

static void give_up_in_child(void* object) {
  struct arbiter* self = object;
  st_arbiter_disable(&self->arbiter);
  if (self->mapping.start)
    mmap(self->mapping.start, st_bind_shm_size(&self->mapping),
         PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
         0);
}

static struct arbiter* new_arbiter(PyObject* type, PyObject* sink) {
  struct arbiter* self =
      (struct arbiter*)PyType_GenericAlloc((PyTypeObject*)type, 0);
  if (!self)
    return NULL;
  Py_INCREF(sink);
  self->sink = sink;
  return self;
}

/* Initialises the core arbiter.  Each constructor calls this function last.  On
 * failure it releases `self`. */
static PyObject* finish(struct arbiter* self, const struct st_shm* shm,
                        const struct st_commit_sink* sink, void* sink_self) {
  if (!st_arbiter_init(&self->arbiter, shm, sink, sink_self)) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  self->is_initialized = true;
  self->arbiter.wait_hooks.wait_begin = wait_begin;
  self->arbiter.wait_hooks.wait_end = wait_end;
  self->fork = (struct st_fork_entry){
      .mutexes = {&self->arbiter.loss_mutex, &self->arbiter.mutex},
      .child = give_up_in_child,
      .self = self,
  };
  st_fork_register(&self->fork);
  return (PyObject*)self;
}

static void arbiter_dealloc(PyObject* object) {
  struct arbiter* self = (struct arbiter*)object;
  if (self->is_initialized) {
    st_fork_unregister(&self->fork);
    st_arbiter_destroy(&self->arbiter);
  }
  if (self->has_batch)
    st_commit_batch_destroy(&self->batch);
  st_bind_unmap_shm(&self->mapping);
  Py_XDECREF(self->sink);
  st_bind_free(object);
}

static PyObject* arbiter_in_process(PyObject* type, PyObject* const* args,
                                    Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "in_process", "endpoint", "size",
                    "page_size");
  PyObject* in[3];
  int64_t size, page_size;
  struct st_producer_endpoint* endpoint;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !(endpoint = st_bind_producer_endpoint(in[0])) ||
      !st_bind_integer(in[1], "size", 1, PY_SSIZE_T_MAX, &size) ||
      !st_bind_integer(in[2], "page_size", 1, ST_MAX_PAGE_SIZE, &page_size))
    return NULL;
  struct arbiter* self = new_arbiter(type, in[0]);
  if (!self)
    return NULL;
  const struct st_shm* shm =
      st_bind_endpoint_make_memory(in[0], (size_t)size, (size_t)page_size);
  if (!shm) {
    Py_DECREF(self);
    return NULL;
  }
  return finish(self, shm, &st_in_process_sink, endpoint);
}

/* Maps the memory of the file `fd`.  If `fd` is -1, maps private memory of
 * `size` bytes. */
static bool map_memory(struct arbiter* self, int fd, size_t size,
                       size_t page_size) {
  struct stat file = {.st_size = (off_t)size};
  if (fd < 0 || fstat(fd, &file) == 0)
    return st_bind_map_shm(fd, (size_t)file.st_size, page_size, &self->mapping);
  PyErr_SetFromErrno(PyExc_OSError);
  return false;
}

static PyObject* arbiter_unbound(PyObject* type, PyObject* const* args,
                                 Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "unbound", "fd", "page_size", "size");
  PyObject* in[3];
  int fd;
  int64_t page_size, size = 0;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_fd(in[0], "fd", true, &fd) ||
      !st_bind_integer(in[1], "page_size", 1, INT32_MAX, &page_size) ||
      !st_bind_integer(in[2], "size", 0, PY_SSIZE_T_MAX, &size))
    return NULL;
  struct arbiter* self = new_arbiter(type, Py_None);
  if (!self || !map_memory(self, fd, (size_t)size, (size_t)page_size)) {
    Py_XDECREF(self);
    return NULL;
  }
  self->has_batch = st_commit_batch_init(&self->batch, NULL, NULL, 0);
  if (!self->has_batch) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return finish(self, &self->mapping, &st_commit_batch_sink, &self->batch);
}

static bool check_unbound(struct arbiter* self) {
  if (self->has_batch && self->sink == Py_None)
    return true;
  PyErr_SetString(PyExc_ValueError,
                  "the arbiter is bound to a service already: only one made by "
                  "Arbiter.unbound() can be bound, once");
  return false;
}

static PyObject* arbiter_emulate(PyObject* object, PyObject* scrapable) {
  struct arbiter* self = (struct arbiter*)object;
  int scraped = PyObject_IsTrue(scrapable);
  if (scraped < 0 || !check_unbound(self))
    return NULL;
  if (!st_commit_batch_emulate(&self->batch, &self->arbiter.shm, scraped))
    return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject* arbiter_bind(PyObject* object, PyObject* const* args,
                              Py_ssize_t count, PyObject* kwnames) {
  enum { QUEUE, SERVICE, COMMIT, REGISTER, UNREGISTER, PATCH_DIRECTLY, COUNT };
  ST_BIND_SIGNATURE(signature, PATCH_DIRECTLY, "bind", "queue", "service_id",
                    "commit_data", "register_trace_writer",
                    "unregister_trace_writer", "patch_directly");
  struct arbiter* self = (struct arbiter*)object;
  PyObject* in[COUNT];
  if (!st_bind_arguments(&signature, args, count, kwnames, in))
    return NULL;
  int64_t ids[PATCH_DIRECTLY];
  struct st_send_queue* queue = st_bind_send_queue(in[QUEUE]);
  bool ok = queue != NULL;
  for (int i = SERVICE; ok && i <= UNREGISTER; i++)
    ok = st_bind_integer(in[i], signature.names[i], 0, UINT32_MAX, &ids[i]);
  if (!ok || !check_unbound(self))
    return NULL;
  struct st_producer_methods methods = {
      (uint32_t)ids[SERVICE], (uint32_t)ids[COMMIT], (uint32_t)ids[REGISTER],
      (uint32_t)ids[UNREGISTER]};
  Py_INCREF(in[QUEUE]);
  Py_SETREF(self->sink, in[QUEUE]);
  if (in[PATCH_DIRECTLY] && PyObject_IsTrue(in[PATCH_DIRECTLY]) > 0)
    st_commit_batch_patch_directly(&self->batch, &self->arbiter.shm);
  st_commit_batch_bind(&self->batch, queue, &methods);
  /* The arbiter is registered with the fork guard after the batch.  Writers
   * call the batch under the arbiter's locks, so the guard must lock the
   * arbiter before the batch (core/fork_guard.h). */
  st_fork_unregister(&self->fork);
  st_fork_register(&self->fork);
  Py_RETURN_NONE;
}

static PyObject* arbiter_bind_startup_target_buffer(PyObject* object,
                                                    PyObject* const* args,
                                                    Py_ssize_t count,
                                                    PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "bind_startup_target_buffer", "reservation",
                    "target_buffer");
  struct arbiter* self = (struct arbiter*)object;
  PyObject* in[2];
  int64_t reservation, buffer;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[0], "reservation", 1, ST_MAX_RESERVATION,
                       &reservation) ||
      !st_bind_integer(in[1], "target_buffer", 0, UINT16_MAX, &buffer))
    return NULL;
  if (self->has_batch &&
      !st_commit_batch_bind_target(&self->batch, (uint32_t)reservation,
                                   (uint16_t)buffer))
    return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject* arbiter_flush(PyObject* self, PyObject* Py_UNUSED(none)) {
  struct st_arbiter* a = arbiter_of(self);
  a->sink->flush(a->sink_self);
  Py_RETURN_NONE;
}

/* Does nothing if service and producer are in the same process: then the
 * service's endpoint is notified by a direct call. */
static PyObject* arbiter_notify_flush_complete(PyObject* object,
                                               PyObject* request_id) {
  struct arbiter* self = (struct arbiter*)object;
  int64_t id;
  if (!st_bind_integer(request_id, "request_id", 0, INT64_MAX, &id))
    return NULL;
  if (self->has_batch)
    st_commit_batch_notify_flush_complete(&self->batch, (uint64_t)id);
  Py_RETURN_NONE;
}

static PyObject* arbiter_open_buffer(PyObject* self, PyObject* buffer) {
  uint32_t id;
  if (!st_bind_target_buffer(buffer, &id))
    return NULL;
  return PyBool_FromLong(st_loss_marks_open(arbiter_of(self), id));
}

static PyObject* arbiter_close_buffer(PyObject* self, PyObject* buffer) {
  uint32_t id;
  if (!st_bind_target_buffer(buffer, &id))
    return NULL;
  st_loss_marks_close(arbiter_of(self), id);
  Py_RETURN_NONE;
}

static PyObject* arbiter_disable(PyObject* self, PyObject* Py_UNUSED(none)) {
  st_arbiter_disable(arbiter_of(self));
  Py_RETURN_NONE;
}

static PyObject* get_live_writers(PyObject* self, void* Py_UNUSED(closure)) {
  struct st_arbiter* a = arbiter_of(self);
  pthread_mutex_lock(&a->mutex);
  uint32_t count = a->live_writers;
  pthread_mutex_unlock(&a->mutex);
  return PyLong_FromUnsignedLong(count);
}

static PyObject* get_size(PyObject* self, void* Py_UNUSED(closure)) {
  return PyLong_FromSize_t(st_bind_shm_size(&arbiter_of(self)->shm));
}

static PyObject* get_lost_commits(PyObject* object, void* Py_UNUSED(closure)) {
  struct arbiter* self = (struct arbiter*)object;
  uint64_t lost = atomic_load(&self->arbiter.chunks_lost);
  if (self->has_batch) {
    pthread_mutex_lock(&self->batch.mutex);
    lost += self->batch.pending.lost_commits;
    pthread_mutex_unlock(&self->batch.mutex);
  }
  return PyLong_FromUnsignedLongLong(lost);
}

#define CLASS_METHOD(name, function, doc)               \
  {                                                     \
    name, (PyCFunction)(void (*)(void))(function),      \
        METH_FASTCALL | METH_KEYWORDS | METH_CLASS, doc \
  }

static PyMethodDef kMethods[] = {
    CLASS_METHOD("in_process", arbiter_in_process, NULL),
    CLASS_METHOD("unbound", arbiter_unbound, NULL),
    {"emulate", arbiter_emulate, METH_O, NULL},
    ST_BIND_KEYWORDS("bind", arbiter_bind, NULL),
    ST_BIND_KEYWORDS("bind_startup_target_buffer",
                     arbiter_bind_startup_target_buffer, NULL),
    {"flush", arbiter_flush, METH_NOARGS, NULL},
    {"notify_flush_complete", arbiter_notify_flush_complete, METH_O, NULL},
    {"open_buffer", arbiter_open_buffer, METH_O, NULL},
    {"close_buffer", arbiter_close_buffer, METH_O, NULL},
    {"disable", arbiter_disable, METH_NOARGS, NULL},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"live_writers", get_live_writers, NULL, NULL, NULL},
    {"size", get_size, NULL, NULL, NULL},
    {"lost_commits", get_lost_commits, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_dealloc, arbiter_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_doc, "Shared memory of one producer, and the sink for its chunks."},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC(
    "Arbiter", struct arbiter,
    Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots);

ST_BIND_PART(arbiter) {
  return st_bind_add_type(module, &kSpec);
}
