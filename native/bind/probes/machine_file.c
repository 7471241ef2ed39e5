/* MachineFile: a file of /proc or /sys that is kept open.
 *
 *   file = MachineFile(path)
 *   file.read()                    contents of an attribute in /sys
 *
 *   file = MachineFile(path, group, counters, parts, resource)
 *   sys_stats_packet((file, ...), start_ns, rest, now_ns)
 *                                  files as a TracePacket with SysStats
 *
 * All files of a sample are read by one call, into the memory of the first one:
 * samples are far apart, so each page and each function that they need is no
 * longer in the processor's caches.
 *
 * The GIL is held during a read, so only one thread at a time uses an object.
 * A read takes no longer than a few switches between threads.
 */
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/probes/message_bytes.h"
#include "core/fields.h"
#include "probes/held_file.h"
#include "probes/sys_files.h"

#include <unistd.h>

#define FIELD(name) ST_FIELD_##name

struct machine_file {
  PyObject_HEAD
  struct st_held_file file;
  const struct st_sys_group* group; /* NULL: an attribute in /sys. */
  struct st_read_buffer buffer;
  struct message_bytes message;
  struct st_sys_choice choice;
  struct st_counter_name* counters;
  char* names;    /* Those of the counters. */
  PyObject* path; /* A strong reference to the bytes of the path. */
};

/* Returns the row of a counter, (name, key), with the name in the row's bytes.
 * `key` is 0, and an exception set, if it has another form. */
static struct st_counter_name counter_of(PyObject* row) {
  struct st_counter_name c = {0};
  Py_ssize_t size = 0;
  if (st_bind_is_row(row) &&
      PyArg_ParseTuple(row, "y#I", &c.name, &size, &c.key))
    c.size = (size_t)size;
  return c;
}

/* Stores the counters, a tuple of (name, key).  The names are copied to one
 * block: they are compared in their order, and after a pause each cache line
 * of them is read from memory.  Returns false with an exception set on
 * failure. */
static bool set_counters(struct machine_file* self, PyObject* rows) {
  size_t count = (size_t)PyTuple_GET_SIZE(rows), bytes = 0;
  for (size_t i = 0; i < count; i++) {
    bytes += counter_of(PyTuple_GET_ITEM(rows, (Py_ssize_t)i)).size;
    if (PyErr_Occurred())
      return false;
  }
  self->counters = PyMem_Calloc(count + 1, sizeof *self->counters);
  char* at = self->names = PyMem_Malloc(bytes + 1);
  if (!self->counters || !self->names)
    return PyErr_NoMemory();
  for (size_t i = 0; i < count; i++) {
    struct st_counter_name c =
        counter_of(PyTuple_GET_ITEM(rows, (Py_ssize_t)i));
    self->counters[i] = (struct st_counter_name){
        .name = memcpy(at, c.name, c.size), .size = c.size, .key = c.key};
    at += c.size;
  }
  self->choice.counters = self->counters;
  self->choice.counter_count = count;
  return true;
}

/* Stores the kind of file, and what is chosen of it.  Returns false with an
 * exception set on failure. */
static bool set_group(struct machine_file* self, PyObject* const* in) {
  int64_t parts = 0, resource = 0;
  const char* name = in[1] ? PyUnicode_AsUTF8(in[1]) : "";
  if (!name ||
      (in[2] && (!st_bind_is_row(in[2]) || !set_counters(self, in[2]))) ||
      !st_bind_integer(in[3], "parts", 0, UINT32_MAX, &parts) ||
      !st_bind_integer(in[4], "resource", 0, UINT32_MAX, &resource))
    return false;
  self->choice.parts = (uint32_t)parts;
  self->choice.resource = (uint32_t)resource;
  self->group = st_sys_group_of(name);
  self->file.is_record = !self->group || self->group->is_record;
  if (*name && !self->group)
    PyErr_Format(PyExc_ValueError, "no file has the counter group %s", name);
  return !*name || self->group;
}

static PyObject* machine_file_new(PyTypeObject* type, PyObject* args,
                                  PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 1, "MachineFile", "path", "group", "counters",
                    "parts", "resource");
  PyObject* in[5];
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in))
    return NULL;
  struct machine_file* self = (struct machine_file*)type->tp_alloc(type, 0);
  if (!self)
    return NULL;
  self->file.fd = -1;
  self->choice.ns_per_tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
  if (!PyUnicode_FSConverter(in[0], &self->path) || !set_group(self, in)) {
    Py_DECREF(self);
    return NULL;
  }
  self->file.path = PyBytes_AS_STRING(self->path);
  return (PyObject*)self;
}

static void machine_file_dealloc(PyObject* object) {
  struct machine_file* self = (struct machine_file*)object;
  st_held_file_close(&self->file);
  free(self->buffer.data);
  message_bytes_free(&self->message);
  PyMem_Free(self->counters);
  PyMem_Free(self->names);
  Py_XDECREF(self->path);
  st_bind_free(object);
}

static PyObject* machine_file_read(PyObject* object,
                                   PyObject* Py_UNUSED(none)) {
  struct machine_file* self = (struct machine_file*)object;
  struct st_text text = st_held_file_read(&self->file, &self->buffer);
  return PyBytes_FromStringAndSize(text.at, (Py_ssize_t)st_text_size(text));
}

/* Returns a file that has a group; NULL with an exception set if the object is
 * none. */
static struct machine_file* file_of(PyObject* object) {
  if (!st_bind_check(object, machine_file_dealloc, "MachineFile"))
    return NULL;
  struct machine_file* file = (struct machine_file*)object;
  if (!file->group)
    PyErr_SetString(PyExc_ValueError, "a file has no group of counters");
  return file->group ? file : NULL;
}

/* Writes the fields of SysStats: those of the files, `rest`, and the time after
 * that.  Returns false with an exception set on failure. */
static bool write_stats(PyObject* files, struct st_read_buffer* buffer,
                        Py_buffer* rest, PyObject* now_ns,
                        struct st_message* stats) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(files); i++) {
    struct machine_file* f = file_of(PyTuple_GET_ITEM(files, i));
    if (!f)
      return false;
    f->group->convert(st_held_file_read(&f->file, buffer), &f->choice, stats);
  }
  st_message_append_raw(stats, rest->buf, (size_t)rest->len);
  PyObject* now = PyObject_CallNoArgs(now_ns);
  if (!now)
    return false;
  st_message_append_varint(stats, FIELD(SYS_STATS_COLLECTION_END_TIMESTAMP),
                           PyLong_AsUnsignedLongLongMask(now));
  Py_DECREF(now);
  return !PyErr_Occurred();
}

static PyObject* write_packet(PyObject* files, struct machine_file* memory,
                              uint64_t start_ns, Py_buffer* rest,
                              PyObject* now_ns) {
  struct st_message stats, *root = &memory->message.root;
  message_bytes_begin(&memory->message);
  st_message_append_varint(root, FIELD(TRACE_PACKET_TIMESTAMP), start_ns);
  st_message_begin_nested(root, &stats, FIELD(TRACE_PACKET_SYS_STATS));
  bool is_written = write_stats(files, &memory->buffer, rest, now_ns, &stats);
  st_message_finalize(&stats);
  PyObject* packet = message_bytes_take(&memory->message);
  if (!is_written)
    Py_CLEAR(packet);
  return packet;
}

static PyObject* sys_stats_packet(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *files, *now_ns;
  unsigned long long start_ns;
  Py_buffer rest;
  if (!PyArg_ParseTuple(args, "O!Ky*O:sys_stats_packet", &PyTuple_Type, &files,
                        &start_ns, &rest, &now_ns))
    return NULL;
  struct machine_file none = {0};
  struct machine_file* memory = &none;
  if (PyTuple_GET_SIZE(files))
    memory = file_of(PyTuple_GET_ITEM(files, 0));
  PyObject* packet =
      memory ? write_packet(files, memory, start_ns, &rest, now_ns) : NULL;
  message_bytes_free(&none.message);
  PyBuffer_Release(&rest);
  return packet;
}

static PyMethodDef kMethods[] = {
    {"read", machine_file_read, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, machine_file_new},
    {Py_tp_dealloc, machine_file_dealloc},
    {Py_tp_methods, kMethods},
    {0},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("MachineFile", struct machine_file, 0, kSlots);

static PyMethodDef kFunctions[] = {
    {"sys_stats_packet", sys_stats_packet, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(machine_file) {
  if (PyModule_AddFunctions(module, kFunctions) < 0)
    return -1;
  return st_bind_add_type(module, &kSpec);
}
