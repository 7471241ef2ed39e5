/* PerfSampler: samples of all processes by perf events.
 *
 *   sampler = PerfSampler(cpu_count, kernel_frames, user_frames, ring_pages,
 *                         max_samples, max_stack_bytes, user_stack=False)
 *   sampler.open(cpu, events, frequency, period, clock)
 *   sampler.enable(True)
 *   more = sampler.read()          copies the records of all CPUs
 *   while (stop := sampler.next()) ...           None when all are handled
 *   packets, stacks = sampler.take()
 *
 * An event is a tuple (type, config, config1, config2, excluded, filter);
 * excluded is a sum of 1 user, 2 kernel, 4 hypervisor.  The stops of next():
 *
 *   ("thread", pid, tid, has_user_stack)   decide(pid, in_scope) answers
 *   ("code", pid, address)                 add_code(start, end, bias, elf) may
 *                                          answer: elf is an ElfFile or None.  Only
 *                                          with user_stack: frames of programs are
 *                                          unwound by the tables of files.
 *                                          clear_code() forgets all answers
 *   ("frames", pid, ((space, address), ...))     add_frame(...) answers
 *   ("name", pid, tid, name, is_exec)
 *   ("mapping", pid, address, size, offset, path)
 *   ("fork", pid, parent), ("exit", pid, tid)
 *   ("lost", cpu, records), ("throttle", cpu, 0)
 *
 * ring_pages is 0 for counters that are only polled, by counts().  The methods
 * hold the GIL: they don't wait.  probes/perf_sampler.h has the details.
 */
#include "probes/perf_sampler.h"

#include <errno.h>
#include <unistd.h>

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/probes/message_bytes.h"
#include "bind/probes/symbols.h"
#include "probes/perf_event.h"

enum { MAX_GROUP = 64, MAX_PAGES = 1 << 16, MAX_CAPACITY = 1 << 26 };

struct perf_sampler {
  PyObject_HEAD
  struct st_perf_sampler* sampler;
  struct st_perf_sampling sampling;
  size_t ring_pages;
  uint32_t cpu_limit, group_size, taken_stacks;
  /* The descriptors of each CPU's group, the leader first. */
  int (*files)[MAX_GROUP];
  struct message_bytes message;
  PyObject* packets;
  PyObject* elf_files; /* A set: those that the sampler uses. */
};

/* Returns the bytes that hold a read of all rings, within limits. */
static size_t capacity_of(int64_t cpus, int64_t pages) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t ring = (size_t)pages * page, all = (size_t)cpus * ring;
  size_t least = (size_t)cpus * 2 * (ST_PERF_MAX_RECORD + 8);
  all = all < MAX_CAPACITY ? all : MAX_CAPACITY;
  return all > least ? all : least;
}

/* Returns which members samples have. */
static unsigned members_of(const struct st_perf_sampling* s) {
  if (!st_perf_has_stacks(s))
    return 0;
  return ST_PERF_CALL_CHAIN | (s->user_stack ? ST_PERF_USER_STACK : 0u);
}

static PyObject* perf_sampler_new(PyTypeObject* type, PyObject* args,
                                  PyObject* kwargs) {
  ST_BIND_SIGNATURE(kSignature, 6, "PerfSampler", "cpu_count", "kernel_frames",
                    "user_frames", "ring_pages", "max_samples",
                    "max_stack_bytes", "user_stack");
  PyObject* in[7];
  int64_t cpus, pages, samples, stack_bytes;
  if (!st_bind_new_arguments(&kSignature, args, kwargs, in) ||
      !st_bind_integer(in[0], "cpu_count", 1, ST_PERF_MAX_CPUS, &cpus) ||
      !st_bind_integer(in[3], "ring_pages", 0, MAX_PAGES, &pages) ||
      !st_bind_integer(in[4], "max_samples", 1, UINT32_MAX, &samples) ||
      !st_bind_integer(in[5], "max_stack_bytes", 0, INT64_MAX, &stack_bytes))
    return NULL;
  struct perf_sampler* self = (struct perf_sampler*)type->tp_alloc(type, 0);
  if (!self)
    return NULL;
  self->sampling.kernel_frames = PyObject_IsTrue(in[1]) == 1;
  self->sampling.user_frames = PyObject_IsTrue(in[2]) == 1;
  self->sampling.user_stack = in[6] && PyObject_IsTrue(in[6]) == 1;
  self->ring_pages = (size_t)pages;
  self->cpu_limit = (uint32_t)cpus;
  self->files = PyMem_Calloc((size_t)cpus, sizeof *self->files);
  self->packets = PyList_New(0);
  self->elf_files = PySet_New(NULL);
  self->sampler =
      st_perf_sampler_create(self->cpu_limit, members_of(&self->sampling),
                             capacity_of(cpus, pages), (uint32_t)samples);
  if (!self->files || !self->packets || !self->elf_files || !self->sampler) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  self->sampler->kernel_only = !self->sampling.user_frames;
  self->sampler->max_stack_bytes = (uint64_t)stack_bytes;
  return (PyObject*)self;
}

static void close_group(const int* files, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    close(files[i]);
}

static void close_all(struct perf_sampler* self) {
  if (!self->sampler)
    return;
  for (uint32_t i = 0; self->files && i < self->sampler->cpu_count; i++)
    close_group(self->files[i], self->group_size);
  st_perf_sampler_destroy(self->sampler);
  self->sampler = NULL;
}

static void perf_sampler_dealloc(PyObject* object) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  close_all(self);
  message_bytes_free(&self->message);
  PyMem_Free(self->files);
  Py_XDECREF(self->packets);
  Py_XDECREF(self->elf_files);
  st_bind_free(object);
}

/* Returns the sampler; NULL with ValueError set after close(). */
static struct st_perf_sampler* open_sampler(PyObject* object) {
  struct st_perf_sampler* s = ((struct perf_sampler*)object)->sampler;
  if (!s)
    PyErr_SetString(PyExc_ValueError, "the PerfSampler is closed");
  return s;
}

/* --- Opening -------------------------------------------------------------- */

static bool event_of(PyObject* row, struct st_perf_event* e) {
  unsigned long long config, config1, config2;
  unsigned excluded;
  *e = (struct st_perf_event){0};
  if (!st_bind_is_row(row) ||
      !PyArg_ParseTuple(row, "IKKKIz", &e->type, &config, &config1, &config2,
                        &excluded, &e->filter))
    return false;
  e->config = config;
  e->config1 = config1;
  e->config2 = config2;
  e->exclude_user = excluded & 1;
  e->exclude_kernel = excluded & 2;
  e->exclude_hypervisor = excluded & 4;
  return true;
}

/* Opens the events of a CPU.  Returns how many were opened; fewer with an
 * exception set. */
static uint32_t open_group(struct perf_sampler* self, int cpu, PyObject* events,
                           int* files) {
  uint32_t count = (uint32_t)PyTuple_GET_SIZE(events);
  const struct st_perf_sampling follower = {.clock = self->sampling.clock};
  for (uint32_t i = 0; i < count; i++) {
    struct st_perf_event event;
    if (!event_of(PyTuple_GET_ITEM(events, i), &event))
      return i;
    files[i] = st_perf_event_open(&event, i ? &follower : &self->sampling, cpu,
                                  i ? files[0] : -1);
    if (files[i] < 0) {
      PyErr_SetFromErrno(PyExc_OSError);
      return i;
    }
  }
  return count;
}

/* Adds a CPU whose group is open.  Returns false with an exception set. */
static bool add_cpu(struct perf_sampler* self, int cpu, int leader) {
  struct st_perf_sampler* s = self->sampler;
  struct st_perf_cpu* added = &s->cpus[s->cpu_count];
  added->cpu = (uint32_t)cpu;
  if (self->ring_pages &&
      !st_perf_ring_map(&added->ring, leader, self->ring_pages)) {
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
  }
  s->cpu_count++;
  return true;
}

static PyObject* perf_sampler_open(PyObject* object, PyObject* args) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  struct st_perf_sampler* s = open_sampler(object);
  PyObject* events;
  int cpu, clock;
  unsigned long long frequency, period;
  if (!s || !PyArg_ParseTuple(args, "iO!KKi:open", &cpu, &PyTuple_Type, &events,
                              &frequency, &period, &clock))
    return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(events);
  if (count < 1 || count > MAX_GROUP || s->cpu_count == self->cpu_limit ||
      (s->cpu_count && (uint32_t)count != self->group_size))
    return PyErr_Format(PyExc_ValueError,
                        "a CPU has 1 to %d events, the same ones as the other "
                        "CPUs, of which there are at most cpu_count",
                        MAX_GROUP);
  self->group_size = (uint32_t)count;
  self->sampling.frequency = frequency;
  self->sampling.period = period;
  self->sampling.clock = clock;
  int* files = self->files[s->cpu_count];
  uint32_t opened = open_group(self, cpu, events, files);
  if (opened == self->group_size && add_cpu(self, cpu, files[0]))
    Py_RETURN_NONE;
  close_group(files, opened);
  return NULL;
}

static PyObject* perf_sampler_enable(PyObject* object, PyObject* enable) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  struct st_perf_sampler* s = open_sampler(object);
  int is_on = s ? PyObject_IsTrue(enable) : -1;
  if (is_on < 0)
    return NULL;
  for (uint32_t i = 0; i < s->cpu_count; i++)
    if (!st_perf_event_enable(self->files[i][0], is_on))
      return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

static PyObject* perf_sampler_close(PyObject* object,
                                    PyObject* Py_UNUSED(none)) {
  close_all((struct perf_sampler*)object);
  Py_RETURN_NONE;
}

/* --- Polling -------------------------------------------------------------- */

/* Returns (cpu, counts of the group). */
static PyObject* counts_of(const struct perf_sampler* self, uint32_t index) {
  uint64_t words[1 + MAX_GROUP];
  ssize_t size = read(self->files[index][0], words, sizeof words);
  if (size < 0)
    return PyErr_SetFromErrno(PyExc_OSError);
  PyObject* counts = PyTuple_New(self->group_size);
  for (uint32_t i = 0; counts && i < self->group_size; i++) {
    bool is_there = (size_t)size >= (i + 2) * sizeof *words;
    PyObject* n = PyLong_FromUnsignedLongLong(is_there ? words[1 + i] : 0);
    if (n)
      PyTuple_SET_ITEM(counts, i, n);
    else
      Py_CLEAR(counts);
  }
  return counts ? Py_BuildValue("IN", self->sampler->cpus[index].cpu, counts)
                : NULL;
}

static PyObject* perf_sampler_counts(PyObject* object,
                                     PyObject* Py_UNUSED(none)) {
  struct st_perf_sampler* s = open_sampler(object);
  PyObject* list = s ? PyList_New(0) : NULL;
  for (uint32_t i = 0; list && i < s->cpu_count; i++) {
    PyObject* row = counts_of((struct perf_sampler*)object, i);
    if (!row || PyList_Append(list, row) < 0)
      Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/* --- Records -------------------------------------------------------------- */

static PyObject* perf_sampler_read(PyObject* object,
                                   PyObject* Py_UNUSED(none)) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  struct st_perf_sampler* s = open_sampler(object);
  if (!s)
    return NULL;
  return PyBool_FromLong(self->ring_pages && st_perf_sampler_read(s));
}

static PyObject* frames_tuple(const struct st_perf_sampler* s) {
  PyObject* frames = PyTuple_New(s->unknown_count);
  for (uint32_t i = 0; frames && i < s->unknown_count; i++) {
    PyObject* row = Py_BuildValue("KK", (unsigned long long)s->unknown[i].space,
                                  (unsigned long long)s->unknown[i].address);
    if (row)
      PyTuple_SET_ITEM(frames, i, row);
    else
      Py_CLEAR(frames);
  }
  return frames;
}

static bool has_user_stack(const struct st_perf_record* r) {
  if (r->registers)
    return true;
  for (uint32_t i = 0; i < r->stack_size; i++)
    if (st_perf_word(r->stack, i) == ST_PERF_USER_MARK)
      return true;
  return false;
}

static PyObject* change_tuple(const struct st_perf_record* r) {
  unsigned pid = r->pid;
  switch (r->type) {
    case ST_PERF_NAME:
      return Py_BuildValue("sIIy#O", "name", pid, r->tid, r->text,
                           (Py_ssize_t)r->text_size,
                           r->misc & ST_PERF_EXEC ? Py_True : Py_False);
    case ST_PERF_MAPPING:
      return Py_BuildValue(
          "sIKKKy#", "mapping", pid, (unsigned long long)r->address,
          (unsigned long long)r->size, (unsigned long long)r->offset, r->text,
          (Py_ssize_t)r->text_size);
    case ST_PERF_FORK:
      return Py_BuildValue("sII", "fork", pid, r->parent);
    default:
      return Py_BuildValue("sII", "exit", pid, r->tid);
  }
}

static PyObject* stop_tuple(const struct st_perf_sampler* s,
                            enum st_perf_stop stop) {
  const struct st_perf_record* r = &s->record;
  switch (stop) {
    case ST_PERF_NEW_THREAD:
      return Py_BuildValue("sIIO", "thread", r->pid, r->tid,
                           has_user_stack(r) ? Py_True : Py_False);
    case ST_PERF_NEW_CODE:
      return Py_BuildValue("sIK", "code", r->pid,
                           (unsigned long long)s->missing);
    case ST_PERF_NEW_FRAMES:
      return Py_BuildValue("sIN", "frames", r->pid, frames_tuple(s));
    case ST_PERF_KERNEL_LOSS:
      return Py_BuildValue("sIK",
                           r->type == ST_PERF_THROTTLE ? "throttle" : "lost",
                           s->cpu, (unsigned long long)r->lost);
    default:
      return change_tuple(r);
  }
}

static bool append_packet(struct perf_sampler* self) {
  PyObject* bytes = message_bytes_take(&self->message);
  bool done = bytes && PyList_Append(self->packets, bytes) == 0;
  Py_XDECREF(bytes);
  return done;
}

static PyObject* perf_sampler_next(PyObject* object,
                                   PyObject* Py_UNUSED(none)) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  struct st_perf_sampler* s = open_sampler(object);
  if (!s)
    return NULL;
  for (;;) {
    message_bytes_begin(&self->message);
    enum st_perf_stop stop = st_perf_sampler_next(s, &self->message.root);
    if (stop == ST_PERF_DONE)
      Py_RETURN_NONE;
    if (stop != ST_PERF_PACKET)
      return stop_tuple(s, stop);
    if (!append_packet(self))
      return NULL;
  }
}

static PyObject* stack_tuple(const struct st_stack_table* table,
                             uint32_t number) {
  uint32_t depth;
  const uint32_t* frames = st_stack_table_frames(table, number, &depth);
  PyObject* tuple = PyTuple_New(depth);
  for (uint32_t i = 0; tuple && i < depth; i++) {
    PyObject* n = PyLong_FromUnsignedLong(frames[i]);
    if (n)
      PyTuple_SET_ITEM(tuple, i, n);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* perf_sampler_take(PyObject* object,
                                   PyObject* Py_UNUSED(none)) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  struct st_perf_sampler* s = open_sampler(object);
  PyObject* stacks = s ? PyList_New(0) : NULL;
  uint32_t count = s ? st_stack_table_stack_count(s->table) : 0;
  for (uint32_t n = self->taken_stacks + 1; stacks && n <= count; n++) {
    PyObject* stack = stack_tuple(s->table, n);
    if (!stack || PyList_Append(stacks, stack) < 0)
      Py_CLEAR(stacks);
    Py_XDECREF(stack);
  }
  PyObject* empty = stacks ? PyList_New(0) : NULL;
  if (!empty) {
    Py_XDECREF(stacks);
    return NULL;
  }
  self->taken_stacks = count;
  PyObject* packets = self->packets;
  self->packets = empty;
  return Py_BuildValue("NN", packets, stacks);
}

/* --- Answers -------------------------------------------------------------- */

static PyObject* perf_sampler_decide(PyObject* object, PyObject* args) {
  struct st_perf_sampler* s = open_sampler(object);
  unsigned pid;
  int in_scope;
  if (!s || !PyArg_ParseTuple(args, "Ip:decide", &pid, &in_scope))
    return NULL;
  st_perf_sampler_decide(s, pid, in_scope);
  Py_RETURN_NONE;
}

static PyObject* perf_sampler_renew(PyObject* object, PyObject* pid) {
  struct st_perf_sampler* s = open_sampler(object);
  int64_t number;
  if (!s || !st_bind_integer(pid, "pid", 0, UINT32_MAX, &number))
    return NULL;
  st_perf_sampler_renew(s, (uint32_t)number);
  Py_RETURN_NONE;
}

static PyObject* perf_sampler_add_code(PyObject* object, PyObject* args) {
  struct perf_sampler* self = (struct perf_sampler*)object;
  struct st_perf_sampler* s = open_sampler(object);
  unsigned long long start, end, bias;
  PyObject* elf;
  if (!s || !PyArg_ParseTuple(args, "KKKO:add_code", &start, &end, &bias, &elf))
    return NULL;
  const struct st_elf_file* file =
      elf == Py_None ? NULL : st_bind_elf_file(elf);
  if (PyErr_Occurred() || (file && PySet_Add(self->elf_files, elf) < 0))
    return NULL;
  st_perf_sampler_add_code(s, start, end, bias, file);
  Py_RETURN_NONE;
}

static PyObject* perf_sampler_clear_code(PyObject* object,
                                         PyObject* Py_UNUSED(none)) {
  struct st_perf_sampler* s = open_sampler(object);
  if (!s)
    return NULL;
  st_perf_sampler_clear_code(s);
  PySet_Clear(((struct perf_sampler*)object)->elf_files);
  Py_RETURN_NONE;
}

static PyObject* perf_sampler_add_frame(PyObject* object, PyObject* args) {
  struct st_perf_sampler* s = open_sampler(object);
  unsigned long long space, address, key;
  if (!s || !PyArg_ParseTuple(args, "KKK:add_frame", &space, &address, &key))
    return NULL;
  return PyLong_FromUnsignedLong(
      st_perf_sampler_add_frame(s, space, address, key));
}

static PyObject* perf_sampler_clear(PyObject* object,
                                    PyObject* Py_UNUSED(none)) {
  struct st_perf_sampler* s = open_sampler(object);
  if (!s)
    return NULL;
  st_perf_sampler_clear(s);
  ((struct perf_sampler*)object)->taken_stacks = 0;
  Py_RETURN_NONE;
}

static PyObject* perf_sampler_stats(PyObject* object,
                                    PyObject* Py_UNUSED(none)) {
  struct st_perf_sampler* s = open_sampler(object);
  if (!s)
    return NULL;
  uint64_t damaged = s->damaged;
  for (uint32_t i = 0; i < s->cpu_count; i++)
    damaged += s->cpus[i].ring.damaged;
  return Py_BuildValue(
      "{sI,sI,sK,sK}", "frames", st_stack_table_frame_count(s->table), "stacks",
      st_stack_table_stack_count(s->table), "skipped",
      (unsigned long long)s->skipped, "damaged", (unsigned long long)damaged);
}

static PyMethodDef kMethods[] = {
    {"open", perf_sampler_open, METH_VARARGS, NULL},
    {"enable", perf_sampler_enable, METH_O, NULL},
    {"close", perf_sampler_close, METH_NOARGS, NULL},
    {"counts", perf_sampler_counts, METH_NOARGS, NULL},
    {"read", perf_sampler_read, METH_NOARGS, NULL},
    {"next", perf_sampler_next, METH_NOARGS, NULL},
    {"take", perf_sampler_take, METH_NOARGS, NULL},
    {"decide", perf_sampler_decide, METH_VARARGS, NULL},
    {"renew", perf_sampler_renew, METH_O, NULL},
    {"add_code", perf_sampler_add_code, METH_VARARGS, NULL},
    {"clear_code", perf_sampler_clear_code, METH_NOARGS, NULL},
    {"add_frame", perf_sampler_add_frame, METH_VARARGS, NULL},
    {"clear", perf_sampler_clear, METH_NOARGS, NULL},
    {"stats", perf_sampler_stats, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, perf_sampler_new},
    {Py_tp_dealloc, perf_sampler_dealloc},
    {Py_tp_methods, kMethods},
    {0},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("PerfSampler", struct perf_sampler, 0, kSlots);

ST_BIND_PART(perf_sampler) {
  return st_bind_add_type(module, &kSpec);
}
