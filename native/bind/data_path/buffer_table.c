#include "bind/data_path/buffer_table.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "bind/common/arguments.h"
#include "bind/common/counters.h"
#include "bind/common/types.h"
#include "core/fork_guard.h"

#include "core/trace_buffer.h"

struct buffer_table {
  PyObject_HEAD
  struct st_buffer_table* table;
  /* The reader lock of the table (st_bind_table_lock_reader). */
  pthread_mutex_t reader;
  struct st_fork_entry fork;
};

static void table_dealloc(PyObject* self);

static struct buffer_table* cast(PyObject* object) {
  return st_bind_check(object, table_dealloc, "BufferTable")
             ? (struct buffer_table*)object
             : NULL;
}

struct st_buffer_table* st_bind_buffer_table(PyObject* object) {
  struct buffer_table* self = cast(object);
  return self ? self->table : NULL;
}

void st_bind_table_lock_reader(PyObject* table) {
  pthread_mutex_t* reader = &((struct buffer_table*)table)->reader;
  if (pthread_mutex_trylock(reader) == 0)
    return;
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(reader);
  Py_END_ALLOW_THREADS
}

void st_bind_table_unlock_reader(PyObject* table) {
  pthread_mutex_unlock(&((struct buffer_table*)table)->reader);
}

/* Runs in the child of a fork.  Unlocks the child's copy of the reader lock,
 * which another thread of the parent may have held. */
static void forget_reader_in_child(void* self) {
  pthread_mutex_init(&((struct buffer_table*)self)->reader, NULL);
}

static PyObject* table_new(PyTypeObject* type, PyObject* args,
                           PyObject* kwargs) {
  static const struct st_bind_signature signature = {"BufferTable", 0, 0, {0}};
  if (!st_bind_new_arguments(&signature, args, kwargs, NULL))
    return NULL;
  struct buffer_table* self =
      (struct buffer_table*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  pthread_mutex_init(&self->reader, NULL);
  self->fork =
      (struct st_fork_entry){.child = forget_reader_in_child, .self = self};
  st_fork_register(&self->fork);
  self->table = st_buffer_table_create();
  if (!self->table) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return (PyObject*)self;
}

static void table_dealloc(PyObject* object) {
  struct buffer_table* self = (struct buffer_table*)object;
  if (self->table)
    st_buffer_table_destroy(self->table);
  st_fork_unregister(&self->fork);
  pthread_mutex_destroy(&self->reader);
  st_bind_free(object);
}

static PyObject* add(struct buffer_table* self, uint16_t id,
                     struct st_trace_buffer* buffer) {
  if (st_buffer_table_add(self->table, id, buffer))
    Py_RETURN_NONE;
  st_trace_buffer_destroy(buffer);
  return PyErr_Format(PyExc_ValueError,
                      "trace buffer %u exists already; remove it first", id);
}

static PyObject* table_create(PyObject* self, PyObject* const* args,
                              Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "create", "buffer_id", "size", "policy",
                    "fd");
  PyObject* in[4];
  uint16_t id;
  int64_t size, policy;
  int fd;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_id16(in[0], "buffer_id", &id) ||
      !st_bind_integer(in[1], "size", 1, PY_SSIZE_T_MAX / 2, &size) ||
      !st_bind_integer(in[2], "policy", ST_RING, ST_DISCARD, &policy) ||
      !st_bind_fd(in[3], "fd", true, &fd))
    return NULL;

  struct st_trace_buffer* buffer;
  errno = 0;
  Py_BEGIN_ALLOW_THREADS
  buffer =
      st_trace_buffer_create((size_t)size, (enum st_fill_policy)policy, fd);
  Py_END_ALLOW_THREADS
  if (!buffer && fd >= 0 && errno != 0 && errno != ENOMEM)
    return PyErr_SetFromErrno(PyExc_OSError);
  if (!buffer)
    return PyErr_NoMemory();
  return add((struct buffer_table*)self, id, buffer);
}

static PyObject* table_recover(PyObject* self, PyObject* const* args,
                               Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "recover", "buffer_id", "fd");
  PyObject* in[2];
  uint16_t id;
  int fd;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_id16(in[0], "buffer_id", &id) ||
      !st_bind_fd(in[1], "fd", false, &fd))
    return NULL;
  struct st_trace_buffer* buffer;
  Py_BEGIN_ALLOW_THREADS
  buffer = st_trace_buffer_recover(fd);
  Py_END_ALLOW_THREADS
  if (!buffer)
    return PyErr_Format(PyExc_ValueError,
                        "descriptor %d is not a trace buffer's file: give the "
                        "ring that a recorder left",
                        fd);
  return add((struct buffer_table*)self, id, buffer);
}

static PyObject* table_remove(PyObject* self, PyObject* buffer_id) {
  uint16_t id;
  if (!st_bind_id16(buffer_id, "buffer_id", &id))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  st_buffer_table_remove(((struct buffer_table*)self)->table, id);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

struct st_trace_buffer* st_bind_acquire_buffer(PyObject* table,
                                               PyObject* buffer_id,
                                               uint16_t* id) {
  if (!st_bind_id16(buffer_id, "buffer_id", id))
    return NULL;
  struct st_trace_buffer* buffer =
      st_buffer_table_acquire(((struct buffer_table*)table)->table, *id);
  if (!buffer)
    PyErr_Format(PyExc_ValueError, "there is no trace buffer %u; create it",
                 *id);
  return buffer;
}

void st_bind_release_buffer(PyObject* table, uint16_t id) {
  st_buffer_table_release(((struct buffer_table*)table)->table, id);
}

static PyObject* table_clone(PyObject* self, PyObject* const* args,
                             Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "clone", "source_id", "clone_id");
  PyObject* in[2];
  uint16_t id, clone_id;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_id16(in[1], "clone_id", &clone_id))
    return NULL;
  struct st_trace_buffer* source = st_bind_acquire_buffer(self, in[0], &id);
  if (!source)
    return NULL;
  struct st_trace_buffer* clone;
  st_bind_table_lock_reader(self);
  Py_BEGIN_ALLOW_THREADS
  clone = st_trace_buffer_clone(source);
  Py_END_ALLOW_THREADS
  st_bind_table_unlock_reader(self);
  st_bind_release_buffer(self, id);
  return clone ? add((struct buffer_table*)self, clone_id, clone)
               : PyErr_NoMemory();
}

static PyObject* table_exchange(PyObject* self, PyObject* const* args,
                                Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "exchange", "buffer_id", "other_id");
  PyObject* in[2];
  uint16_t id, other_id;
  if (!st_bind_arguments(&signature, args, count, kwnames, in))
    return NULL;
  struct st_trace_buffer* buffer = st_bind_acquire_buffer(self, in[0], &id);
  if (!buffer)
    return NULL;
  struct st_trace_buffer* other =
      st_bind_acquire_buffer(self, in[1], &other_id);
  if (!other) {
    st_bind_release_buffer(self, id);
    return NULL;
  }
  st_bind_table_lock_reader(self);
  Py_BEGIN_ALLOW_THREADS
  st_trace_buffer_exchange(buffer, other);
  Py_END_ALLOW_THREADS
  st_bind_table_unlock_reader(self);
  st_bind_release_buffer(self, other_id);
  st_bind_release_buffer(self, id);
  Py_RETURN_NONE;
}

static PyObject* table_set_producer(PyObject* self, PyObject* const* args,
                                    Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 4, "set_producer", "buffer_id", "producer_id",
                    "uid", "pid", "machine_id");
  PyObject* in[5];
  uint16_t id, producer;
  int64_t uid, pid, machine_id = 0;
  /* If the kernel cannot map a uid, it reports -1. */
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_id16(in[1], "producer_id", &producer) ||
      !st_bind_integer(in[2], "uid", -1, UINT32_MAX, &uid) ||
      !st_bind_integer(in[3], "pid", INT32_MIN, INT32_MAX, &pid) ||
      !st_bind_integer(in[4], "machine_id", 0, UINT32_MAX, &machine_id))
    return NULL;
  struct st_trace_buffer* buffer = st_bind_acquire_buffer(self, in[0], &id);
  if (!buffer)
    return NULL;
  st_trace_buffer_set_producer(buffer, producer, (uint32_t)uid, (int32_t)pid);
  if (machine_id)
    st_trace_buffer_set_machine(buffer, producer, (uint32_t)machine_id);
  st_bind_release_buffer(self, id);
  Py_RETURN_NONE;
}

static PyObject* table_set_watermark(PyObject* self, PyObject* const* args,
                                     Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "set_watermark", "buffer_id", "eventfd",
                    "unread_bytes");
  PyObject* in[3];
  uint16_t id;
  int fd;
  int64_t unread;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_fd(in[1], "eventfd", true, &fd) ||
      !st_bind_integer(in[2], "unread_bytes", 0, INT64_MAX, &unread))
    return NULL;
  struct st_trace_buffer* buffer = st_bind_acquire_buffer(self, in[0], &id);
  if (!buffer)
    return NULL;
  st_trace_buffer_set_watermark(buffer, fd, (uint64_t)unread);
  st_bind_release_buffer(self, id);
  Py_RETURN_NONE;
}

#define FIELD(name) \
  { #name, offsetof(struct st_buffer_stats, name) }
static const struct st_bind_counter kCounters[] = {
    FIELD(bytes_written),
    FIELD(chunks_written),
    FIELD(bytes_overwritten),
    FIELD(chunks_overwritten),
    FIELD(chunks_discarded),
    FIELD(chunks_rewritten),
    FIELD(chunks_relocated),
    FIELD(chunks_committed_out_of_order),
    FIELD(write_wrap_count),
    FIELD(patches_succeeded),
    FIELD(patches_failed),
    FIELD(readaheads_succeeded),
    FIELD(readaheads_failed),
    FIELD(bytes_read),
    FIELD(chunks_read),
    FIELD(padding_bytes_written),
    FIELD(padding_bytes_cleared),
    FIELD(abi_violations),
    FIELD(trace_writer_packet_loss),
    FIELD(sequence_packet_loss),
    {NULL, 0},
};
#undef FIELD

static PyObject* table_stats(PyObject* self, PyObject* buffer_id) {
  uint16_t id;
  struct st_trace_buffer* buffer = st_bind_acquire_buffer(self, buffer_id, &id);
  if (!buffer)
    return NULL;
  struct st_buffer_stats stats;
  st_trace_buffer_stats(buffer, &stats);
  uint64_t size = st_trace_buffer_size(buffer);
  uint64_t unread = st_trace_buffer_unread(buffer);
  st_bind_release_buffer(self, id);

  PyObject* dict = st_bind_counters(kCounters, &stats);
  if (dict && (st_bind_set_counter(dict, "buffer_size", size) < 0 ||
               st_bind_set_counter(dict, "unread", unread) < 0))
    Py_CLEAR(dict);
  return dict;
}

static PyObject* tuple_of(const uint64_t* values) {
  PyObject* tuple = PyTuple_New(ST_HISTOGRAM_BUCKETS);
  for (Py_ssize_t i = 0; tuple && i < ST_HISTOGRAM_BUCKETS; i++) {
    PyObject* value = PyLong_FromUnsignedLongLong(values[i]);
    if (!value)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, value);
  }
  return tuple;
}

static PyObject* writer_tuple(const struct st_writer_histogram* w) {
  struct st_histogram histogram = st_writer_histogram_of(w);
  PyObject* counts = tuple_of(histogram.counts);
  PyObject* sums = counts ? tuple_of(histogram.sums) : NULL;
  if (!sums) {
    Py_XDECREF(counts);
    return NULL;
  }
  return Py_BuildValue("(IINN)", w->key >> 16, w->key & 0xFFFF, counts, sums);
}

static bool visit_writers(const struct st_writer_stats* writers,
                          PyObject* visit) {
  for (uint32_t i = 0; i < writers->count; i++) {
    PyObject* writer = writer_tuple(&writers->writers[i]);
    PyObject* result = writer ? PyObject_CallObject(visit, writer) : NULL;
    Py_XDECREF(writer);
    Py_XDECREF(result);
    if (!result)
      return false;
  }
  return true;
}

// One writer at a time: the objects of thousands of writers would take megabytes.
static PyObject* table_visit_writers(PyObject* self, PyObject* args) {
  PyObject* buffer_id;
  PyObject* visit;
  if (!PyArg_ParseTuple(args, "OO:visit_writers", &buffer_id, &visit))
    return NULL;
  uint16_t id;
  struct st_trace_buffer* buffer = st_bind_acquire_buffer(self, buffer_id, &id);
  if (!buffer)
    return NULL;
  struct st_writer_stats writers = {0};
  bool copied = st_trace_buffer_writers(buffer, &writers);
  st_bind_release_buffer(self, id);
  bool visited =
      copied ? visit_writers(&writers, visit) : PyErr_NoMemory() != NULL;
  st_writer_stats_destroy(&writers);
  return visited ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef kMethods[] = {
    ST_BIND_KEYWORDS("create", table_create, NULL),
    ST_BIND_KEYWORDS("recover", table_recover, NULL),
    ST_BIND_KEYWORDS("clone", table_clone, NULL),
    ST_BIND_KEYWORDS("exchange", table_exchange, NULL),
    ST_BIND_KEYWORDS("set_producer", table_set_producer, NULL),
    ST_BIND_KEYWORDS("set_watermark", table_set_watermark, NULL),
    {"remove", table_remove, METH_O, NULL},
    {"stats", table_stats, METH_O, NULL},
    {"visit_writers", table_visit_writers, METH_VARARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, table_new},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, kMethods},
    {Py_tp_doc, "Trace buffers of one service, by global buffer id."},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("BufferTable", struct buffer_table,
                                        Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(buffer_table) {
  if (PyModule_AddIntConstant(module, "RING", ST_RING) < 0 ||
      PyModule_AddIntConstant(module, "DISCARD", ST_DISCARD) < 0)
    return -1;
  return st_bind_add_type(module, &kSpec);
}
