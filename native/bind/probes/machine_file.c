/* MachineFile: a file of /proc or /sys that is kept open.
 *
 *   file = MachineFile(path)
 *   file.read()                              contents of an attribute in /sys
 *   file.sys_stats("stat", parts, resource)  a file of /proc as SysStats fields
 *   MachineFile(path, counters)              for "meminfo" and "vmstat", with a
 *                                            tuple of (name, key)
 *
 * The GIL is held during a read, so only one thread at a time uses an object.
 * A read takes no longer than a few switches between threads.
 */
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/probes/message_bytes.h"
#include "probes/held_file.h"
#include "probes/sys_files.h"

#include <unistd.h>

struct machine_file {
  PyObject_HEAD
  struct st_held_file file;
  struct st_read_buffer buffer;
  struct message_bytes message;
  struct st_sys_choice choice;
  struct st_counter_name* counters;
  /* Strong references to the bytes of the path, and to the tuple with the names
   * of the counters. */
  PyObject* path;
  PyObject* names;
};

/* Stores the counters, a tuple of (name, key).  Returns false with an exception
 * set on failure. */
static bool set_counters(struct machine_file* self, PyObject* rows) {
  Py_ssize_t count = PyTuple_GET_SIZE(rows);
  self->names = Py_NewRef(rows);
  self->counters = PyMem_Calloc((size_t)count + 1, sizeof *self->counters);
  if (!self->counters)
    return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; i++) {
    struct st_counter_name* c = &self->counters[i];
    Py_ssize_t size;
    PyObject* row = PyTuple_GET_ITEM(rows, i);
    if (!st_bind_is_row(row) ||
        !PyArg_ParseTuple(row, "y#I", &c->name, &size, &c->key))
      return false;
    c->size = (size_t)size;
  }
  self->choice.counters = self->counters;
  self->choice.counter_count = (size_t)count;
  return true;
}

static PyObject* machine_file_new(PyTypeObject* type, PyObject* args,
                                  PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 1, "MachineFile", "path", "counters");
  PyObject* in[2];
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in))
    return NULL;
  if (in[1] && !st_bind_is_row(in[1]))
    return NULL;
  struct machine_file* self = (struct machine_file*)type->tp_alloc(type, 0);
  if (!self)
    return NULL;
  self->file.fd = -1;
  self->choice.ns_per_tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
  if (!PyUnicode_FSConverter(in[0], &self->path) ||
      (in[1] && !set_counters(self, in[1]))) {
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
  Py_XDECREF(self->path);
  Py_XDECREF(self->names);
  st_bind_free(object);
}

static PyObject* machine_file_read(PyObject* object,
                                   PyObject* Py_UNUSED(none)) {
  struct machine_file* self = (struct machine_file*)object;
  self->file.is_record = true; /* an attribute in /sys */
  struct st_text text = st_held_file_read(&self->file, &self->buffer);
  return PyBytes_FromStringAndSize(text.at, (Py_ssize_t)st_text_size(text));
}

static PyObject* machine_file_sys_stats(PyObject* object, PyObject* args) {
  struct machine_file* self = (struct machine_file*)object;
  const char* group;
  self->choice.parts = self->choice.resource = 0;
  if (!PyArg_ParseTuple(args, "s|II:sys_stats", &group, &self->choice.parts,
                        &self->choice.resource))
    return NULL;
  const struct st_sys_group* file = st_sys_group_of(group);
  if (!file)
    return PyErr_Format(PyExc_ValueError, "no file has the counter group %s",
                        group);
  message_bytes_begin(&self->message);
  self->file.is_record = file->is_record;
  file->convert(st_held_file_read(&self->file, &self->buffer), &self->choice,
                &self->message.root);
  return message_bytes_take(&self->message);
}

static PyMethodDef kMethods[] = {
    {"read", machine_file_read, METH_NOARGS, NULL},
    {"sys_stats", machine_file_sys_stats, METH_VARARGS, NULL},
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

ST_BIND_PART(machine_file) {
  return st_bind_add_type(module, &kSpec);
}
