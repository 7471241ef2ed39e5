/* ProcessReader: reads the processes of a machine, and encodes them.
 *
 *   reader = ProcessReader(folder, thread_names, ...)
 *   reader.scan()            fields of a ProcessTree: all processes and threads
 *   reader.poll()            fields of ProcessStats: values that have changed
 *   reader.new_processes()   fields of a ProcessTree: processes with values that
 *                            were not described yet
 *   reader.pids()            the ids of the last scan or poll
 *   reader.forget_values()   makes the next poll() return all values
 *   reader.forget()          also forgets which processes were described
 *
 * The GIL is released while files are read.  Only one thread at a time may use
 * an object.
 */
#include "probes/process_reader.h"

#include <unistd.h>

#include "bind/common/errors.h"
#include "bind/common/types.h"
#include "bind/probes/message_bytes.h"

struct process_reader {
  PyObject_HEAD
  struct st_process_reader reader;
  struct message_bytes message;
  bool is_busy;
};

static PyObject* process_reader_new(PyTypeObject* type, PyObject* args,
                                    PyObject* kwargs) {
  static char* names[] = {"folder",   "thread_names", "main_threads", "ages",
                          "runtimes", "smaps",        "dmabuf",       NULL};
  PyObject* folder;
  int on[6] = {0};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$pppppp", names,
                                   PyUnicode_FSConverter, &folder, &on[0],
                                   &on[1], &on[2], &on[3], &on[4], &on[5]))
    return NULL;
  struct process_reader* self = (struct process_reader*)type->tp_alloc(type, 0);
  struct st_process_options options = {
      .thread_names = on[0],
      .main_threads = on[1],
      .ages = on[2],
      .runtimes = on[3],
      .smaps = on[4],
      .dmabuf = on[5],
      .ns_per_tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)};
  if (self)
    st_process_reader_init(&self->reader, PyBytes_AS_STRING(folder), &options);
  Py_DECREF(folder);
  return (PyObject*)self;
}

static void process_reader_dealloc(PyObject* object) {
  struct process_reader* self = (struct process_reader*)object;
  st_process_reader_free(&self->reader);
  message_bytes_free(&self->message);
  st_bind_free(object);
}

/* The methods that write messages.  SCAN and POLL list the processes first. */
enum what { SCAN, POLL, NEW };

static bool run(struct process_reader* self, enum what what) {
  struct st_process_reader* r = &self->reader;
  if (what != NEW && !st_process_reader_list(r))
    return false;
  message_bytes_begin(&self->message);
  if (what == POLL)
    st_write_process_values(r, &self->message.root);
  else
    st_write_process_tree(r, what == SCAN ? ST_ALL_PROCESSES : ST_NEW_PROCESSES,
                          &self->message.root);
  return true;
}

static PyObject* written(PyObject* object, enum what what) {
  struct process_reader* self = (struct process_reader*)object;
  if (self->is_busy) {
    set_protocol_error("another thread uses this ProcessReader");
    return NULL;
  }
  bool done;
  self->is_busy = true;
  Py_BEGIN_ALLOW_THREADS
  done = run(self, what);
  Py_END_ALLOW_THREADS
  self->is_busy = false;
  return done ? message_bytes_take(&self->message) : PyErr_NoMemory();
}

static PyObject* scan(PyObject* self, PyObject* Py_UNUSED(none)) {
  return written(self, SCAN);
}

static PyObject* poll(PyObject* self, PyObject* Py_UNUSED(none)) {
  return written(self, POLL);
}

static PyObject* new_processes(PyObject* self, PyObject* Py_UNUSED(none)) {
  return written(self, NEW);
}

static PyObject* pids(PyObject* object, PyObject* Py_UNUSED(none)) {
  const struct st_process_reader* r = &((struct process_reader*)object)->reader;
  PyObject* list = PyList_New((Py_ssize_t)r->count);
  for (size_t i = 0; list && i < r->count; i++) {
    PyObject* pid = PyLong_FromLong(r->entries[i].pid);
    if (!pid)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, (Py_ssize_t)i, pid);
  }
  return list;
}

static PyObject* forget_values(PyObject* object, PyObject* Py_UNUSED(none)) {
  st_process_reader_forget_values(&((struct process_reader*)object)->reader);
  Py_RETURN_NONE;
}

static PyObject* forget(PyObject* object, PyObject* Py_UNUSED(none)) {
  st_process_reader_forget(&((struct process_reader*)object)->reader);
  Py_RETURN_NONE;
}

static PyMethodDef kMethods[] = {
    {"scan", scan, METH_NOARGS, NULL},
    {"poll", poll, METH_NOARGS, NULL},
    {"new_processes", new_processes, METH_NOARGS, NULL},
    {"pids", pids, METH_NOARGS, NULL},
    {"forget_values", forget_values, METH_NOARGS, NULL},
    {"forget", forget, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, process_reader_new},
    {Py_tp_dealloc, process_reader_dealloc},
    {Py_tp_methods, kMethods},
    {0},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("ProcessReader", struct process_reader, 0, kSlots);

ST_BIND_PART(process_reader) {
  return st_bind_add_type(module, &kSpec);
}
