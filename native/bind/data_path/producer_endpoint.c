#include "bind/data_path/producer_endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "bind/common/arguments.h"
#include "bind/common/counters.h"
#include "bind/common/types.h"
#include "bind/data_path/buffer_table.h"
#include "bind/data_path/shm_mapping.h"
#include "core/fork_guard.h"

#include "core/ipc_frame.h"

struct endpoint {
  PyObject_HEAD
  PyObject* table; /* The BufferTable that contains the producer's buffers. */
  bool is_initialized;
  struct st_producer_endpoint endpoint;
  struct st_fork_entry fork;
  /* The mapping of the shared memory.  It is zero before memory is attached. */
  struct st_shm mapping;
};

static void endpoint_dealloc(PyObject* object);

static struct endpoint* cast(PyObject* object) {
  return st_bind_check(object, endpoint_dealloc, "ProducerEndpointCore")
             ? (struct endpoint*)object
             : NULL;
}

struct st_producer_endpoint* st_bind_producer_endpoint(PyObject* object) {
  struct endpoint* self = cast(object);
  return self ? &self->endpoint : NULL;
}

static PyObject* endpoint_new(PyTypeObject* type, PyObject* args,
                              PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 2, "ProducerEndpointCore", "table",
                    "producer_id");
  PyObject* in[2];
  uint16_t producer;
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !st_bind_buffer_table(in[0]) ||
      !st_bind_id16(in[1], "producer_id", &producer))
    return NULL;
  struct endpoint* self = (struct endpoint*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  Py_INCREF(in[0]);
  self->table = in[0];
  self->is_initialized = st_producer_endpoint_init(&self->endpoint, producer,
                                                   st_bind_buffer_table(in[0]));
  if (!self->is_initialized) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  self->fork = (struct st_fork_entry){.mutexes = {&self->endpoint.mutex}};
  st_fork_register(&self->fork);
  return (PyObject*)self;
}

static void endpoint_dealloc(PyObject* object) {
  struct endpoint* self = (struct endpoint*)object;
  if (self->is_initialized) {
    st_fork_unregister(&self->fork);
    st_producer_endpoint_destroy(&self->endpoint);
  }
  st_bind_unmap_shm(&self->mapping);
  Py_XDECREF(self->table);
  st_bind_free(object);
}

static bool map(struct endpoint* self, int fd, size_t size, size_t page_size) {
  if (self->mapping.start) {
    PyErr_SetString(PyExc_ValueError,
                    "this producer has shared memory already; it keeps it for "
                    "life");
    return false;
  }
  if (!st_bind_map_shm(fd, size, page_size, &self->mapping))
    return false;
  (fd < 0 ? st_producer_endpoint_set_own_shm : st_producer_endpoint_set_shm)(
      &self->endpoint, &self->mapping);
  return true;
}

const struct st_shm* st_bind_endpoint_make_memory(PyObject* object, size_t size,
                                                  size_t page_size) {
  struct endpoint* self = cast(object);
  /* The mapping is private.  A forked child has its own copy and cannot change
   * the parent's memory. */
  if (!self || !map(self, -1, size, page_size))
    return NULL;
  return &self->endpoint.shm;
}

/* Checks that the file is a memfd with a seal against shrinking.  If a mapped
 * file shrank, the service would die of SIGBUS. */
static bool check_file(int fd, int64_t size) {
  struct stat file;
  if (fstat(fd, &file) < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
  }
  int seals = fcntl(fd, F_GET_SEALS);
  if (file.st_size >= size && seals >= 0 && (seals & F_SEAL_SHRINK))
    return true;
  PyErr_Format(PyExc_ValueError,
               "shared memory must be a memfd of at least %lld bytes, sealed "
               "against shrinking (F_SEAL_SHRINK)",
               (long long)size);
  return false;
}

static PyObject* endpoint_attach_fd(PyObject* self, PyObject* const* args,
                                    Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "attach_fd", "fd", "size", "page_size");
  PyObject* in[3];
  int fd;
  int64_t size, page_size;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_fd(in[0], "fd", false, &fd) ||
      !st_bind_integer(in[1], "size", 1, PY_SSIZE_T_MAX, &size) ||
      !st_bind_integer(in[2], "page_size", 1, ST_MAX_PAGE_SIZE, &page_size) ||
      !check_file(fd, size) ||
      !map((struct endpoint*)self, fd, (size_t)size, (size_t)page_size))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject* endpoint_allow_buffer(PyObject* self, PyObject* const* args,
                                       Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "allow_buffer", "buffer_id", "allow");
  PyObject* in[2];
  uint16_t id;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_id16(in[0], "buffer_id", &id))
    return NULL;
  int allow = PyObject_IsTrue(in[1]);
  if (allow < 0)
    return NULL;
  st_producer_endpoint_allow_buffer(&((struct endpoint*)self)->endpoint, id,
                                    allow);
  Py_RETURN_NONE;
}

/* Both ids may be any uint32: the peer chooses them, and the core checks
 * them. */
static PyObject* endpoint_register_writer(PyObject* self, PyObject* const* args,
                                          Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "register_writer", "writer_id", "buffer_id");
  PyObject* in[2];
  int64_t writer, buffer;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[0], "writer_id", 0, UINT32_MAX, &writer) ||
      !st_bind_integer(in[1], "buffer_id", 0, UINT32_MAX, &buffer))
    return NULL;
  st_producer_endpoint_register_writer(&((struct endpoint*)self)->endpoint,
                                       (uint32_t)writer, (uint32_t)buffer);
  Py_RETURN_NONE;
}

static PyObject* endpoint_unregister_writer(PyObject* self, PyObject* id) {
  int64_t writer;
  if (!st_bind_integer(id, "writer_id", 0, UINT32_MAX, &writer))
    return NULL;
  st_producer_endpoint_unregister_writer(&((struct endpoint*)self)->endpoint,
                                         (uint32_t)writer);
  Py_RETURN_NONE;
}

static PyObject* endpoint_commit(PyObject* object, PyObject* request) {
  struct endpoint* self = (struct endpoint*)object;
  Py_buffer bytes;
  if (!st_bind_bytes(request, "request", &bytes))
    return NULL;
  uint64_t flush_id = 0;
  Py_BEGIN_ALLOW_THREADS
  st_producer_endpoint_commit(&self->endpoint, bytes.buf, (size_t)bytes.len,
                              &flush_id);
  Py_END_ALLOW_THREADS
  PyBuffer_Release(&bytes);
  return PyLong_FromUnsignedLongLong(flush_id);
}

struct frame_run {
  uint32_t service_id, method_id;
  size_t consumed;
  uint64_t frames, flush_id;
};

static void commit_frames(struct endpoint* self, const uint8_t* data,
                          size_t size, struct frame_run* run) {
  struct st_ipc_invoke invoke;
  size_t frame;
  while ((frame = st_ipc_frame_get_invoke(data + run->consumed,
                                          size - run->consumed, &invoke))) {
    if (invoke.service_id != run->service_id ||
        invoke.method_id != run->method_id || !invoke.drop_reply)
      break;
    uint64_t flush_id = 0;
    st_producer_endpoint_commit(&self->endpoint, invoke.args, invoke.args_size,
                                &flush_id);
    if (flush_id > run->flush_id)
      run->flush_id = flush_id;
    run->consumed += frame;
    run->frames++;
  }
}

static PyObject* endpoint_commit_frames(PyObject* self, PyObject* const* args,
                                        Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "commit_frames", "data", "service_id",
                    "method_id");
  PyObject* in[3];
  int64_t service, method;
  Py_buffer bytes;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[1], "service_id", 0, UINT32_MAX, &service) ||
      !st_bind_integer(in[2], "method_id", 0, UINT32_MAX, &method) ||
      !st_bind_bytes(in[0], "data", &bytes))
    return NULL;
  struct frame_run run = {(uint32_t)service, (uint32_t)method, 0, 0, 0};
  Py_BEGIN_ALLOW_THREADS
  commit_frames((struct endpoint*)self, bytes.buf, (size_t)bytes.len, &run);
  Py_END_ALLOW_THREADS
  PyBuffer_Release(&bytes);
  return Py_BuildValue("nKK", (Py_ssize_t)run.consumed,
                       (unsigned long long)run.frames,
                       (unsigned long long)run.flush_id);
}

/* Converts a Python list of ids to a malloc'ed array.  `*count` becomes the
 * number of ids, which may be 0.  Returns NULL with an exception set on
 * failure. */
static uint16_t* id_list(PyObject* list, size_t* count) {
  PyObject* items = PySequence_List(list);
  if (!items)
    return NULL;
  Py_ssize_t size = PyList_Size(items);
  uint16_t* ids = malloc(((size_t)size + 1) * sizeof *ids);
  if (!ids)
    PyErr_NoMemory();
  for (Py_ssize_t i = 0; ids && i < size; i++) {
    if (st_bind_id16(PyList_GetItem(items, i), "buffer_id", &ids[i]))
      continue;
    free(ids);
    ids = NULL;
  }
  Py_DECREF(items);
  *count = (size_t)size;
  return ids;
}

static PyObject* endpoint_scrape(PyObject* object, PyObject* buffer_ids) {
  struct endpoint* self = (struct endpoint*)object;
  size_t count;
  uint16_t* ids = id_list(buffer_ids, &count);
  if (!ids)
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  st_producer_endpoint_scrape(&self->endpoint, ids, count);
  Py_END_ALLOW_THREADS
  free(ids);
  Py_RETURN_NONE;
}

static PyObject* endpoint_adopt_writers(PyObject* object, PyObject* buffer) {
  struct endpoint* self = (struct endpoint*)object;
  uint16_t id;
  if (!st_bind_id16(buffer, "buffer_id", &id))
    return NULL;
  st_producer_endpoint_adopt_writers(&self->endpoint, id);
  Py_RETURN_NONE;
}

#define FIELD(name) \
  { #name, offsetof(struct st_endpoint_stats, name) }
static const struct st_bind_counter kCounters[] = {
    FIELD(chunks_discarded),
    FIELD(patches_discarded),
    FIELD(malformed_requests),
    {NULL, 0},
};
#undef FIELD

static PyObject* endpoint_stats(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct st_producer_endpoint* e = &((struct endpoint*)object)->endpoint;
  pthread_mutex_lock(&e->mutex);
  struct st_endpoint_stats stats = e->stats;
  pthread_mutex_unlock(&e->mutex);
  return st_bind_counters(kCounters, &stats);
}

static PyMethodDef kMethods[] = {
    ST_BIND_KEYWORDS("attach_fd", endpoint_attach_fd, NULL),
    ST_BIND_KEYWORDS("allow_buffer", endpoint_allow_buffer, NULL),
    ST_BIND_KEYWORDS("register_writer", endpoint_register_writer, NULL),
    ST_BIND_KEYWORDS("commit_frames", endpoint_commit_frames, NULL),
    {"unregister_writer", endpoint_unregister_writer, METH_O, NULL},
    {"commit", endpoint_commit, METH_O, NULL},
    {"adopt_writers", endpoint_adopt_writers, METH_O, NULL},
    {"scrape", endpoint_scrape, METH_O, NULL},
    {"stats", endpoint_stats, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, endpoint_new},
    {Py_tp_dealloc, endpoint_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_doc, "The service's side of one producer's data path."},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("ProducerEndpointCore", struct endpoint,
                                        Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(producer_endpoint) {
  return st_bind_add_type(module, &kSpec);
}
