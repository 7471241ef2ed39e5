/* PythonSampler: samples the Python stacks of another process.
 *
 *   sampler = PythonSampler(pid, layout, heads, gil, mode, period_ns,
 *                           sequence_id, start_us, form)
 *   sampler.add_native(may_stop)
 *                             adds C calls to all further samples
 *   sampler.set_code(ranges, loops)
 *                             the code of the process, for C calls
 *   sampler.run(duration_ns)  samples; returns an st_run_result
 *   sampler.take_frames()     new frames since the last call; a frame is
 *                             (address of code, line)
 *   sampler.take()            (packets, new stacks) since the last take(); a
 *                             stack is a tuple of frame numbers
 *   sampler.hits()            the number of samples of each stack
 *   sampler.clear()           removes all frames and stacks
 *   sampler.dump()            (state, native_id, holds_gil, frames) of each
 *                             thread now; frames is None if the stack can't be
 *                             read
 *   sampler.stats()           counts of ticks, samples and losses
 *
 * read_process_memory(pid, address, size) returns bytes of another process.
 */
#include "probes/python_sampler.h"

#include <errno.h>

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/probes/code_ranges.h"
#include "bind/probes/python_target.h"
#include "probes/process_memory.h"

/* The largest number of bytes that one call of read_process_memory copies. */
enum { MAX_READ = 1 << 20 };

struct sampler {
  PyObject_HEAD
  struct st_python_sampler* sampler;
  /* The numbers of frames and stacks that were returned. */
  uint32_t taken_frames, taken_stacks;
  bool is_running;
};

static bool gil_of(PyObject* gil, struct st_python_target* target) {
  int64_t holder = 0, locked = 0;
  if (gil && (!PyArg_ParseTuple(gil, "LL;gil must be two addresses", &holder,
                                &locked)))
    return false;
  target->gil_holder = (uint64_t)holder;
  target->gil_locked = (uint64_t)locked;
  return true;
}

static PyObject* sampler_new(PyTypeObject* type, PyObject* args,
                             PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 9, "PythonSampler", "pid", "layout", "heads",
                    "gil", "mode", "period_ns", "sequence_id", "start_us",
                    "form");
  PyObject* in[9];
  int64_t pid, mode, period, sequence, start, form;
  struct st_python_target target = {0};
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !st_bind_integer(in[0], "pid", 1, INT32_MAX, &pid) ||
      !st_bind_layout(in[1], &target.layout) ||
      !st_bind_heads(in[2], &target) || !gil_of(in[3], &target) ||
      !st_bind_integer(in[4], "mode", 0, ST_SAMPLE_GIL, &mode) ||
      !st_bind_integer(in[5], "period_ns", 1000, INT64_MAX, &period) ||
      !st_bind_integer(in[6], "sequence_id", 0, UINT32_MAX, &sequence) ||
      !st_bind_integer(in[7], "start_us", 0, INT64_MAX, &start) ||
      !st_bind_integer(in[8], "form", 0, ST_STACK_SAMPLE, &form))
    return NULL;
  target.pid = (int)pid;
  struct st_sampler_config config = {.mode = (enum st_sample_mode)mode,
                                     .period_ns = (uint64_t)period,
                                     .sequence_id = (uint32_t)sequence,
                                     .start_us = (uint64_t)start,
                                     .form = (enum st_sample_form)form};
  struct sampler* self = (struct sampler*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  self->sampler = st_python_sampler_create(&target, &config);
  if (!self->sampler) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return (PyObject*)self;
}

static void sampler_dealloc(PyObject* object) {
  struct sampler* self = (struct sampler*)object;
  if (self->sampler)
    st_python_sampler_destroy(self->sampler);
  st_bind_free(object);
}

/* Returns false, with RuntimeError set, while another thread is in run(). */
static bool is_free(struct sampler* self) {
  if (!self->is_running)
    return true;
  PyErr_SetString(PyExc_RuntimeError,
                  "the sampler runs in another thread: wait until run() ends");
  return false;
}

static PyObject* sampler_add_native(PyObject* object, PyObject* may_stop) {
  struct sampler* self = (struct sampler*)object;
  int stops = PyObject_IsTrue(may_stop);
  if (stops < 0 || !is_free(self))
    return NULL;
  if (st_python_sampler_native(self->sampler))
    return PyErr_Format(PyExc_RuntimeError, "C calls are added already");
  if (!st_python_sampler_add_native(self->sampler, stops))
    return PyErr_NoMemory();
  Py_RETURN_NONE;
}

/* Fills `loops`.  Returns their number, or -1 with an exception set. */
static int loops_of(PyObject* list, uint64_t* loops) {
  PyObject* all = PySequence_Fast(list, "loops must be a sequence of ints");
  if (!all)
    return -1;
  int count = (int)Py_MIN(PySequence_Fast_GET_SIZE(all), ST_MAP_MAX_LOOPS);
  for (int i = 0; i < count && !PyErr_Occurred(); i++)
    loops[i] = PyLong_AsUnsignedLongLong(PySequence_Fast_GET_ITEM(all, i));
  Py_DECREF(all);
  return PyErr_Occurred() ? -1 : count;
}

static PyObject* sampler_set_code(PyObject* object, PyObject* const* args,
                                  Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "set_code", "ranges", "loops");
  struct sampler* self = (struct sampler*)object;
  PyObject* in[2];
  uint64_t loops[ST_MAP_MAX_LOOPS];
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !is_free(self))
    return NULL;
  struct st_native_sampler* native = st_python_sampler_native(self->sampler);
  if (!native)
    return PyErr_Format(PyExc_RuntimeError, "call add_native first");
  struct st_code_range* ranges =
      PyMem_New(struct st_code_range, ST_MAP_MAX_RANGES);
  if (!ranges)
    return PyErr_NoMemory();
  int range_count = st_bind_code_ranges(in[0], ranges);
  int loop_count = range_count < 0 ? -1 : loops_of(in[1], loops);
  if (loop_count >= 0)
    st_code_map_set(st_native_sampler_map(native), ranges, range_count, loops,
                    loop_count);
  PyMem_Free(ranges);
  return loop_count < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject* sampler_run(PyObject* object, PyObject* duration) {
  struct sampler* self = (struct sampler*)object;
  int64_t ns;
  if (!is_free(self) ||
      !st_bind_integer(duration, "duration_ns", 0, INT64_MAX / 2, &ns))
    return NULL;
  enum st_run_result result;
  self->is_running = true;
  Py_BEGIN_ALLOW_THREADS
  result = st_python_sampler_run(self->sampler, (uint64_t)ns);
  Py_END_ALLOW_THREADS
  self->is_running = false;
  return PyLong_FromLong(result);
}

static PyObject* numbers_tuple(const uint32_t* numbers, uint32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (uint32_t i = 0; tuple && i < count; i++) {
    PyObject* number = PyLong_FromUnsignedLong(numbers[i]);
    if (!number) {
      Py_DECREF(tuple);
      return NULL;
    }
    PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

static PyObject* frame_tuple(const struct st_stack_table* table,
                             uint32_t number) {
  struct st_table_frame frame = st_stack_table_frame(table, number);
  return Py_BuildValue("Ki", (unsigned long long)frame.function,
                       (int)frame.line);
}

static PyObject* stack_tuple(const struct st_stack_table* table,
                             uint32_t number) {
  uint32_t depth;
  const uint32_t* frames = st_stack_table_frames(table, number, &depth);
  return numbers_tuple(frames, depth);
}

/* Returns a list of the table's elements with the numbers first + 1 to last. */
static PyObject* list_of(const struct st_stack_table* table, uint32_t first,
                         uint32_t last,
                         PyObject* (*make)(const struct st_stack_table*,
                                           uint32_t)) {
  PyObject* list = PyList_New(0);
  for (uint32_t number = first + 1; list && number <= last; number++) {
    PyObject* element = make(table, number);
    if (!element || PyList_Append(list, element) < 0)
      Py_CLEAR(list);
    Py_XDECREF(element);
  }
  return list;
}

static PyObject* sampler_take_frames(PyObject* object,
                                     PyObject* Py_UNUSED(unused)) {
  struct sampler* self = (struct sampler*)object;
  if (!is_free(self))
    return NULL;
  const struct st_stack_table* table = st_python_sampler_table(self->sampler);
  uint32_t count = st_stack_table_frame_count(table);
  PyObject* frames = list_of(table, self->taken_frames, count, frame_tuple);
  if (frames)
    self->taken_frames = count;
  return frames;
}

static PyObject* sampler_take(PyObject* object, PyObject* Py_UNUSED(unused)) {
  struct sampler* self = (struct sampler*)object;
  if (!is_free(self))
    return NULL;
  const struct st_stack_table* table = st_python_sampler_table(self->sampler);
  uint32_t count = st_stack_table_stack_count(table);
  PyObject* stacks = list_of(table, self->taken_stacks, count, stack_tuple);
  if (!stacks)
    return NULL;
  self->taken_stacks = count;
  size_t size;
  const uint8_t* packets = st_python_sampler_take(self->sampler, &size);
  return Py_BuildValue("y#N", (const char*)packets, (Py_ssize_t)size, stacks);
}

static PyObject* sampler_clear(PyObject* object, PyObject* Py_UNUSED(unused)) {
  struct sampler* self = (struct sampler*)object;
  if (!is_free(self))
    return NULL;
  st_python_sampler_clear(self->sampler);
  self->taken_frames = self->taken_stacks = 0;
  Py_RETURN_NONE;
}

static PyObject* sampler_hits(PyObject* object, PyObject* Py_UNUSED(unused)) {
  struct sampler* self = (struct sampler*)object;
  if (!is_free(self))
    return NULL;
  const struct st_stack_table* table = st_python_sampler_table(self->sampler);
  uint32_t count = st_stack_table_stack_count(table);
  PyObject* hits = PyList_New(count);
  for (uint32_t i = 0; hits && i < count; i++) {
    PyObject* number =
        PyLong_FromUnsignedLong(st_stack_table_hits(table, i + 1));
    if (number)
      PyList_SET_ITEM(hits, i, number);
    else
      Py_CLEAR(hits);
  }
  return hits;
}

static bool add_stack(void* list, const struct st_thread_stack* stack) {
  bool is_torn = stack->depth < 0;
  PyObject* frames = is_torn
                         ? Py_NewRef(Py_None)
                         : numbers_tuple(stack->frames, (uint32_t)stack->depth);
  PyObject* row =
      frames ? Py_BuildValue("KKON", (unsigned long long)stack->state,
                             (unsigned long long)stack->native_id,
                             stack->holds_gil ? Py_True : Py_False, frames)
             : NULL;
  int error = row ? PyList_Append(list, row) : -1;
  Py_XDECREF(row);
  return !error;
}

static PyObject* sampler_dump(PyObject* object, PyObject* Py_UNUSED(unused)) {
  struct sampler* self = (struct sampler*)object;
  PyObject* list = is_free(self) ? PyList_New(0) : NULL;
  if (!list)
    return NULL;
  if (st_python_sampler_dump(self->sampler, add_stack, list))
    return list;
  Py_DECREF(list);
  return PyErr_Occurred()
             ? NULL
             : PyErr_Format(PyExc_ProcessLookupError,
                            "the process has no Python threads that can be "
                            "read");
}

static PyObject* sampler_stats(PyObject* object, PyObject* Py_UNUSED(unused)) {
  struct st_sampler_stats s =
      st_python_sampler_stats(((struct sampler*)object)->sampler);
  struct st_native_sampler* native =
      st_python_sampler_native(((struct sampler*)object)->sampler);
  struct st_native_stats n = {0};
  uint64_t unknown = 0;
  if (native) {
    n = st_native_sampler_stats(native);
    unknown = st_code_map_unknown(st_native_sampler_map(native));
  }
  return Py_BuildValue(
      "{sK,sK,sK,sK,sK,sK,sK,sK,sK,sK,sK,sK,sK}", "native",
      (unsigned long long)n.native, "unstopped",
      (unsigned long long)n.unstopped, "refused", (unsigned long long)n.refused,
      "paused_ns", (unsigned long long)n.paused_ns, "unknown_code",
      (unsigned long long)unknown, "ticks", (unsigned long long)s.ticks,
      "samples", (unsigned long long)s.samples, "torn",
      (unsigned long long)s.torn, "late", (unsigned long long)s.late, "unseen",
      (unsigned long long)s.unseen, "no_room", (unsigned long long)s.no_room,
      "cut", (unsigned long long)s.cut, "factor", (unsigned long long)s.factor);
}

static PyObject* read_process_memory(PyObject* Py_UNUSED(module),
                                     PyObject* const* args, Py_ssize_t count,
                                     PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "read_process_memory", "pid", "address",
                    "size");
  PyObject* in[3];
  int64_t pid, address, size;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[0], "pid", 1, INT32_MAX, &pid) ||
      !st_bind_integer(in[1], "address", 0, INT64_MAX, &address) ||
      !st_bind_integer(in[2], "size", 0, MAX_READ, &size))
    return NULL;
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (!bytes ||
      (size && !st_process_read((int)pid, (uint64_t)address,
                                PyBytes_AS_STRING(bytes), (size_t)size))) {
    Py_CLEAR(bytes);
    if (!PyErr_Occurred())
      PyErr_SetFromErrno(PyExc_OSError);
  }
  return bytes;
}

static PyMethodDef kMethods[] = {
    {"add_native", sampler_add_native, METH_O, NULL},
    ST_BIND_KEYWORDS("set_code", sampler_set_code, NULL),
    {"run", sampler_run, METH_O, NULL},
    {"take_frames", sampler_take_frames, METH_NOARGS, NULL},
    {"take", sampler_take, METH_NOARGS, NULL},
    {"clear", sampler_clear, METH_NOARGS, NULL},
    {"hits", sampler_hits, METH_NOARGS, NULL},
    {"dump", sampler_dump, METH_NOARGS, NULL},
    {"stats", sampler_stats, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, sampler_new},
    {Py_tp_dealloc, sampler_dealloc},
    {Py_tp_methods, kMethods},
    {0},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("PythonSampler", struct sampler, 0, kSlots);

static PyMethodDef kFunctions[] = {
    ST_BIND_KEYWORDS("read_process_memory", read_process_memory, NULL),
    {0},
};

ST_BIND_PART(python_sampler) {
  if (PyModule_AddFunctions(module, kFunctions) < 0)
    return -1;
  return st_bind_add_type(module, &kSpec);
}
