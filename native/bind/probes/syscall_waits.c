/* SyscallWaits: finds the system calls in which threads wait, from the pages of
 * trace_pipe_raw.
 *
 *   waits = SyscallWaits(kinds, enter_id, exit_id, page_size, min_ns,
 *                        hidden_tid)
 *   waits.read(fd)        the pages of a CPU
 *   waits.take(until)     a list of calls (probes/syscall_waits.h)
 *   waits.open(now)       the calls that have not ended, each once
 *   waits.rest()          the calls that have not ended at the end
 *   waits.losses()        (events, threads)
 *
 * The GIL is released while pages are read.  One thread at a time uses an object.
 */
#include "probes/syscall_waits.h"
#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "probes/ftrace_batch.h"
#include "probes/ftrace_page.h"

enum { MAX_PAGE_SIZE = 1 << 16, MAX_BATCHES = 64 };

struct syscall_waits {
  PyObject_HEAD
  struct st_syscall_waits waits;
  struct st_ftrace_batch batch;
  Py_buffer kinds;
};

static PyObject* syscall_waits_new(PyTypeObject* type, PyObject* args,
                                   PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 6, "SyscallWaits", "kinds", "enter_id",
                    "exit_id", "page_size", "min_ns", "hidden_tid");
  PyObject* in[6];
  int64_t enter, leave, page_size, min_ns, hidden;
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in) ||
      !st_bind_integer(in[1], "enter_id", 0, UINT16_MAX, &enter) ||
      !st_bind_integer(in[2], "exit_id", 0, UINT16_MAX, &leave) ||
      !st_bind_integer(in[3], "page_size", ST_FTRACE_PAGE_HEADER_SIZE,
                       MAX_PAGE_SIZE, &page_size) ||
      !st_bind_integer(in[4], "min_ns", 0, INT64_MAX, &min_ns) ||
      !st_bind_integer(in[5], "hidden_tid", 0, INT32_MAX, &hidden))
    return NULL;
  struct syscall_waits* self = (struct syscall_waits*)type->tp_alloc(type, 0);
  if (!self)
    return NULL;
  if (!st_bind_bytes(in[0], "kinds", &self->kinds)) {
    Py_DECREF(self);
    return NULL;
  }
  self->waits = (struct st_syscall_waits){.kinds = self->kinds.buf,
                                          .kind_count = (size_t)self->kinds.len,
                                          .enter_id = (uint16_t)enter,
                                          .exit_id = (uint16_t)leave,
                                          .min_ns = (uint64_t)min_ns,
                                          .hidden_tid = (int32_t)hidden};
  if (st_syscall_waits_init(&self->waits) &&
      st_ftrace_batch_init(&self->batch, (size_t)page_size))
    return (PyObject*)self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}

static void syscall_waits_dealloc(PyObject* object) {
  struct syscall_waits* self = (struct syscall_waits*)object;
  st_syscall_waits_free(&self->waits);
  st_ftrace_batch_free(&self->batch);
  PyBuffer_Release(&self->kinds);
  st_bind_free(object);
}

static void read_pages(struct syscall_waits* self, int fd) {
  bool more = true;
  for (int i = 0; more && i < MAX_BATCHES; i++) {
    more = st_ftrace_batch_read(&self->batch, fd);
    for (uint32_t page = 0; page < self->batch.count; page++)
      st_syscall_waits_add_page(
          &self->waits, self->batch.pages + page * self->batch.page_size,
          self->batch.page_size);
  }
}

static PyObject* syscall_waits_read(PyObject* object, PyObject* arg) {
  int fd;
  if (!st_bind_fd(arg, "fd", false, &fd))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  read_pages((struct syscall_waits*)object, fd);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static bool append(PyObject* list, const struct st_syscall* c) {
  PyObject* row =
      Py_BuildValue("(iIKKLKKi)", c->tid, c->number,
                    (unsigned long long)c->begin, (unsigned long long)c->end,
                    (long long)c->result, (unsigned long long)c->arguments[0],
                    (unsigned long long)c->arguments[1], c->used_fd);
  bool done = row && PyList_Append(list, row) == 0;
  Py_XDECREF(row);
  return done;
}

/* Returns a list of the calls for each of which `next` is true. */
#define LIST_OF(next)             \
  struct st_syscall call;         \
  PyObject* list = PyList_New(0); \
  while (list && (next)) {        \
    if (!append(list, &call))     \
      Py_CLEAR(list);             \
  }                               \
  return list

static PyObject* syscall_waits_take(PyObject* object, PyObject* arg) {
  struct syscall_waits* self = (struct syscall_waits*)object;
  int64_t until;
  if (!st_bind_integer(arg, "until", 0, INT64_MAX, &until))
    return NULL;
  st_syscall_waits_sort(&self->waits, (uint64_t)until);
  LIST_OF(st_syscall_waits_next(&self->waits, &call));
}

static PyObject* syscall_waits_open(PyObject* object, PyObject* arg) {
  struct syscall_waits* self = (struct syscall_waits*)object;
  int64_t now;
  if (!st_bind_integer(arg, "now", 0, INT64_MAX, &now))
    return NULL;
  LIST_OF(st_syscall_waits_open(&self->waits, (uint64_t)now, &call));
}

static PyObject* syscall_waits_rest(PyObject* object,
                                    PyObject* Py_UNUSED(none)) {
  struct syscall_waits* self = (struct syscall_waits*)object;
  LIST_OF(st_syscall_waits_rest(&self->waits, &call));
}

static PyObject* syscall_waits_losses(PyObject* object,
                                      PyObject* Py_UNUSED(none)) {
  const struct st_syscall_waits* w = &((struct syscall_waits*)object)->waits;
  return Py_BuildValue("KK", (unsigned long long)w->lost_events,
                       (unsigned long long)w->dropped_threads);
}

static PyMethodDef kMethods[] = {
    {"read", syscall_waits_read, METH_O, NULL},
    {"take", syscall_waits_take, METH_O, NULL},
    {"open", syscall_waits_open, METH_O, NULL},
    {"rest", syscall_waits_rest, METH_NOARGS, NULL},
    {"losses", syscall_waits_losses, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, syscall_waits_new},
    {Py_tp_dealloc, syscall_waits_dealloc},
    {Py_tp_methods, kMethods},
    {0},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("SyscallWaits", struct syscall_waits, 0, kSlots);

ST_BIND_PART(syscall_waits) {
  return st_bind_add_type(module, &kSpec);
}
