/* FtraceReader: reads kernel events from trace_pipe_raw, and encodes them.
 *
 *   reader = FtraceReader(events, page_size, cpu_count, print_rules)
 *   reader.drain(writer, pipes, batches, clock, names)
 *                                            writes what the CPUs have recorded
 *   reader.errors()                          FtraceParseStatus errors so far
 *   ftrace_cpu_stats(files)                  statistics of the ring buffers
 *
 * An event is a tuple (id, number, form, fields, descriptor, prefix), a field a
 * tuple (number, offset, size, kind, label); probes/ftrace_event.h has the forms
 * and kinds.  A rule of the print filter is
 * a tuple (type or None, prefix, allow).
 * The GIL is released while pages are read and converted.  A bundle is converted
 * in memory of the reader, since its size must be known before it is written.
 */
#include "probes/ftrace_reader.h"

#include <fcntl.h>

#include "bind/common/arguments.h"
#include "bind/common/errors.h"
#include "bind/common/types.h"
#include "bind/data_path/trace_writer.h"
#include "bind/probes/message_bytes.h"
#include "core/fields.h"
#include "probes/ftrace_stats.h"
#include "probes/held_file.h"

enum { MAX_PAGE_SIZE = 1 << 16, MAX_CPUS = 1 << 14, MAX_ID = UINT16_MAX };

struct ftrace_reader {
  PyObject_HEAD
  struct st_ftrace_reader* reader;
  struct st_ftrace_table table;
  struct message_bytes message;
  struct st_print_rule* print_rules;
  /* The tuples of the events and rules.  The table points to bytes in them. */
  PyObject *rows, *rules;
  bool is_busy;
};

static struct st_ftrace_field* fields_from(PyObject* rows) {
  Py_ssize_t count = PyTuple_GET_SIZE(rows);
  struct st_ftrace_field* fields =
      PyMem_Calloc((size_t)count + 1, sizeof *fields);
  if (!fields)
    return (void*)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; i++) {
    struct st_ftrace_field* f = &fields[i];
    PyObject* row = PyTuple_GET_ITEM(rows, i);
    Py_ssize_t label_size;
    if (!st_bind_is_row(row) ||
        !PyArg_ParseTuple(row, "IHHbz#", &f->number, &f->offset, &f->size,
                          &f->kind, &f->label, &label_size)) {
      PyMem_Free(fields);
      return NULL;
    }
    f->label_size = (size_t)label_size;
  }
  return fields;
}

static bool add_event(struct st_ftrace_table* table, PyObject* row) {
  struct st_ftrace_event event = {0};
  int id;
  PyObject* fields;
  Py_ssize_t size, prefix_size;
  if (!st_bind_is_row(row) ||
      !PyArg_ParseTuple(row, "iIbO!z#z#", &id, &event.number, &event.form,
                        &PyTuple_Type, &fields, &event.descriptor, &size,
                        &event.prefix, &prefix_size))
    return false;
  event.descriptor_size = (size_t)size;
  event.prefix_size = (size_t)prefix_size;
  event.field_count = (uint32_t)PyTuple_GET_SIZE(fields);
  event.fields = fields_from(fields);
  if (!event.fields)
    return false;
  if (id >= 0 && id <= MAX_ID && !table->events[id].fields &&
      st_ftrace_event_is_valid(&event)) {
    table->events[id] = event;
    return true;
  }
  PyMem_Free((void*)event.fields);
  PyErr_Format(PyExc_ValueError, "the event %d can't be converted", id);
  return false;
}

static bool set_table(struct ftrace_reader* self) {
  Py_ssize_t count = PyTuple_GET_SIZE(self->rows);
  self->table.events = PyMem_Calloc(MAX_ID + 1, sizeof *self->table.events);
  if (!self->table.events)
    return PyErr_NoMemory();
  self->table.count = MAX_ID + 1;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!add_event(&self->table, PyTuple_GET_ITEM(self->rows, i)))
      return false;
  }
  return true;
}

static bool add_rule(struct st_print_rule* rule, PyObject* row) {
  Py_ssize_t type_size, prefix_size;
  int allow;
  if (!st_bind_is_row(row) ||
      !PyArg_ParseTuple(row, "z#y#p", &rule->type, &type_size, &rule->prefix,
                        &prefix_size, &allow))
    return false;
  rule->type_size = (size_t)type_size;
  rule->prefix_size = (size_t)prefix_size;
  rule->allow = allow;
  return true;
}

static bool set_print_rules(struct ftrace_reader* self) {
  Py_ssize_t count = self->rules ? PyTuple_GET_SIZE(self->rules) : 0;
  self->print_rules =
      PyMem_Calloc((size_t)count + 1, sizeof(struct st_print_rule));
  if (!self->print_rules)
    return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!add_rule(&self->print_rules[i], PyTuple_GET_ITEM(self->rules, i)))
      return false;
  }
  self->table.print_filter =
      (struct st_print_filter){self->print_rules, (size_t)count};
  return true;
}

static PyObject* ftrace_reader_new(PyTypeObject* type, PyObject* args,
                                   PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 3, "FtraceReader", "events", "page_size",
                    "cpu_count", "print_rules");
  PyObject* in[4];
  int64_t page_size, cpus;
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in) ||
      !st_bind_is_row(in[0]) ||
      !st_bind_integer(in[1], "page_size", ST_FTRACE_PAGE_HEADER_SIZE,
                       MAX_PAGE_SIZE, &page_size) ||
      !st_bind_integer(in[2], "cpu_count", 1, MAX_CPUS, &cpus) ||
      (in[3] && !st_bind_is_row(in[3])))
    return NULL;
  struct ftrace_reader* self = (struct ftrace_reader*)type->tp_alloc(type, 0);
  if (!self)
    return NULL;
  self->rows = Py_NewRef(in[0]);
  self->rules = Py_XNewRef(in[3]);
  if (set_table(self) && set_print_rules(self)) {
    self->reader =
        st_ftrace_reader_new(self->table, (size_t)page_size, (uint32_t)cpus);
    if (self->reader)
      return (PyObject*)self;
    PyErr_NoMemory();
  }
  Py_DECREF(self);
  return NULL;
}

static void ftrace_reader_dealloc(PyObject* object) {
  struct ftrace_reader* self = (struct ftrace_reader*)object;
  st_ftrace_reader_free(self->reader);
  message_bytes_free(&self->message);
  for (size_t i = 0; self->table.events && i < self->table.count; i++)
    PyMem_Free((void*)self->table.events[i].fields);
  PyMem_Free(self->table.events);
  PyMem_Free(self->print_rules);
  Py_XDECREF(self->rows);
  Py_XDECREF(self->rules);
  st_bind_free(object);
}

/* Reads a batch of pages if `fd` is not negative.  Writes the next bundle;
 * returns false if there is none. */
static bool next_bundle(struct ftrace_reader* self, int fd, uint32_t cpu,
                        bool* more) {
  bool has_bundle;
  Py_BEGIN_ALLOW_THREADS
  if (fd >= 0)
    *more = st_ftrace_read(self->reader, fd, cpu);
  message_bytes_begin(&self->message);
  has_bundle = st_ftrace_next_bundle(self->reader, &self->message.root);
  Py_END_ALLOW_THREADS
  return has_bundle;
}

/* Returns the addresses in the bundle: that of number 1 first. */
static PyObject* addresses_of(const struct st_ftrace_bundle* bundle) {
  size_t count = bundle->addresses.entries.size;
  PyObject* tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple && i < count; i++) {
    PyObject* address =
        PyLong_FromUnsignedLongLong(bundle->addresses.entries.data[i].address);
    if (address)
      PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, address);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

/* Where a call of drain() writes to. */
struct drain {
  PyObject* writer;
  struct st_iovec clock;
  PyObject* names;
};

/* Returns the names of the addresses in the bundle: encoded fields of a packet.
 * Returns NULL with an exception set on failure. */
static PyObject* names_of(const struct ftrace_reader* self,
                          const struct drain* to) {
  const struct st_ftrace_bundle* bundle = &self->reader->bundle;
  if (to->names == Py_None || !bundle->addresses.entries.size)
    return PyBytes_FromStringAndSize(NULL, 0);
  PyObject* addresses = addresses_of(bundle);
  PyObject* names =
      addresses ? PyObject_CallOneArg(to->names, addresses) : NULL;
  Py_XDECREF(addresses);
  if (!names || PyBytes_Check(names))
    return names;
  Py_DECREF(names);
  PyErr_SetString(PyExc_TypeError, "names must return bytes");
  return NULL;
}

/* Writes the bundle as a packet.  Its message ends with the clock's fields. */
static bool write_bundle(struct ftrace_reader* self, const struct drain* to) {
  size_t size;
  const uint8_t* bytes = message_bytes_view(&self->message, &size);
  PyObject* names = bytes ? names_of(self, to) : NULL;
  if (!names)
    return false;
  uint8_t head[ST_MAX_TAG + ST_MAX_VARINT];
  uint8_t* p = st_put_varint(
      head, st_tag(ST_FIELD_TRACE_PACKET_FTRACE_EVENTS, ST_WIRE_DELIMITED));
  p = st_put_varint(p, size + to->clock.size);
  struct st_iovec pieces[] = {
      {head, (size_t)(p - head)},
      {bytes, size},
      to->clock,
      {PyBytes_AS_STRING(names), (size_t)PyBytes_GET_SIZE(names)}};
  st_bind_trace_writer_append(to->writer, pieces, 4);
  Py_DECREF(names);
  return true;
}

/* Writes what a CPU has recorded, at most `batches`.  Returns false with an
 * exception set on failure. */
static bool drain_cpu(struct ftrace_reader* self, const struct drain* to,
                      int fd, uint32_t cpu, int64_t batches) {
  bool more = true;
  while (more && batches-- > 0) {
    int next = fd;
    while (next_bundle(self, next, cpu, &more)) {
      if (!write_bundle(self, to))
        return false;
      next = -1;
    }
  }
  return true;
}

static bool drain_pipe(struct ftrace_reader* self, const struct drain* to,
                       PyObject* row, int64_t batches) {
  int fd;
  unsigned cpu;
  if (!st_bind_is_row(row) || !PyArg_ParseTuple(row, "Ii", &cpu, &fd))
    return false;
  if (fd >= 0 && cpu < self->reader->cpu_count)
    return drain_cpu(self, to, fd, cpu, batches);
  PyErr_Format(PyExc_ValueError,
               "cpu must be below cpu_count, and fd not negative: cpu is %u, "
               "fd is %d",
               cpu, fd);
  return false;
}

static bool drain_all(struct ftrace_reader* self, const struct drain* to,
                      PyObject* pipes, int64_t batches) {
  bool done = true;
  for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(pipes); i++)
    done = drain_pipe(self, to, PyTuple_GET_ITEM(pipes, i), batches);
  return done;
}

static PyObject* ftrace_reader_drain(PyObject* object, PyObject* args) {
  struct ftrace_reader* self = (struct ftrace_reader*)object;
  struct drain to;
  PyObject* pipes;
  const char* clock;
  Py_ssize_t clock_size;
  long long batches;
  if (!PyArg_ParseTuple(args, "OO!Ly#O:drain", &to.writer, &PyTuple_Type,
                        &pipes, &batches, &clock, &clock_size, &to.names) ||
      !st_bind_trace_writer(to.writer))
    return NULL;
  if (self->is_busy) {
    set_protocol_error("another thread uses this FtraceReader");
    return NULL;
  }
  to.clock = (struct st_iovec){clock, (size_t)clock_size};
  self->is_busy = true;
  bool done = drain_all(self, &to, pipes, batches);
  self->is_busy = false;
  return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject* ftrace_reader_errors(PyObject* object,
                                      PyObject* Py_UNUSED(none)) {
  uint32_t errors = ((struct ftrace_reader*)object)->reader->bundle.errors;
  PyObject* list = PyList_New(0);
  for (int status = 0; list && status < ST_FTRACE_STATUS_END; status++) {
    PyObject* number = errors >> status & 1 ? PyLong_FromLong(status) : NULL;
    if (number && PyList_Append(list, number) < 0)
      Py_CLEAR(list);
    Py_XDECREF(number);
  }
  return list;
}

/* Appends the statistics in a row (cpu, path).  Returns false with an exception
 * set on failure. */
static bool append_cpu_stats(PyObject* row, struct st_read_buffer* buffer,
                             struct st_message* stats) {
  unsigned cpu;
  const char* path;
  if (!st_bind_is_row(row) || !PyArg_ParseTuple(row, "Is", &cpu, &path))
    return false;
  st_write_ftrace_cpu_stats(st_read_record(AT_FDCWD, path, buffer), cpu, stats);
  return true;
}

static PyObject* ftrace_cpu_stats(PyObject* Py_UNUSED(module), PyObject* rows) {
  struct message_bytes message = {0};
  struct st_read_buffer buffer = {0};
  if (!st_bind_is_row(rows))
    return NULL;
  message_bytes_begin(&message);
  bool done = true;
  for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(rows); i++)
    done = append_cpu_stats(PyTuple_GET_ITEM(rows, i), &buffer, &message.root);
  PyObject* bytes = message_bytes_take(&message);
  if (!done)
    Py_CLEAR(bytes);
  message_bytes_free(&message);
  free(buffer.data);
  return bytes;
}

static PyMethodDef kFunctions[] = {
    {"ftrace_cpu_stats", ftrace_cpu_stats, METH_O, NULL},
    {0},
};

static PyMethodDef kMethods[] = {
    {"drain", ftrace_reader_drain, METH_VARARGS, NULL},
    {"errors", ftrace_reader_errors, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, ftrace_reader_new},
    {Py_tp_dealloc, ftrace_reader_dealloc},
    {Py_tp_methods, kMethods},
    {0},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("FtraceReader", struct ftrace_reader, 0, kSlots);

ST_BIND_PART(ftrace_reader) {
  if (PyModule_AddFunctions(module, kFunctions) < 0)
    return -1;
  return st_bind_add_type(module, &kSpec);
}
