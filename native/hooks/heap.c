#include "hooks/heap.h"

#include <stdlib.h>

#include "hooks/heap_hooks.h"

static bool check_options(const struct st_heap_options* o) {
  if (o->interval >= 1 && o->interval <= (uint64_t)1 << 40 && o->limit <= 1000)
    return true;
  PyErr_SetString(PyExc_ValueError,
                  "interval must be from 1 to 2**40 bytes, limit from 0 to "
                  "1000 thousandths");
  return false;
}

static PyObject* heap_start(PyObject* Py_UNUSED(module), PyObject* args,
                            PyObject* kwargs) {
  static char* names[] = {"interval", "limit", "max_interval", "seed", NULL};
  unsigned long long interval, max_interval = 0, seed = 0;
  unsigned int limit = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "K|$IKK:heap_start", names,
                                   &interval, &limit, &max_interval, &seed))
    return NULL;
  struct st_heap_options o = {interval, max_interval, limit, seed};
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "heap profiles belong to the main interpreter");
    return NULL;
  }
  if (!check_options(&o) || !st_heap_hooks_start(&o))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject* heap_stop(PyObject* Py_UNUSED(module),
                           PyObject* Py_UNUSED(unused)) {
  if (st_heap_hooks_running())
    st_heap_hooks_stop();
  Py_RETURN_NONE;
}

static PyObject* heap_unsampled(PyObject* Py_UNUSED(module),
                                PyObject* function) {
  bool before = st_heap_hooks_leave_out(true);
  PyObject* result = PyObject_CallNoArgs(function);
  st_heap_hooks_leave_out(before);
  return result;
}

static PyObject* row_tuple(const struct st_heap_row* r) {
  return Py_BuildValue(
      "(IKKKKKK)", r->stack, (unsigned long long)r->allocated.bytes,
      (unsigned long long)r->freed.bytes,
      (unsigned long long)r->allocated.samples,
      (unsigned long long)r->freed.samples, (unsigned long long)r->at_max.bytes,
      (unsigned long long)r->at_max.samples);
}

static PyObject* rows_list(const struct st_heap_dump* dump) {
  PyObject* list = PyList_New((Py_ssize_t)dump->count);
  for (size_t i = 0; list && i < dump->count; i++) {
    PyObject* row = row_tuple(&dump->rows[i]);
    if (!row)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, (Py_ssize_t)i, row);
  }
  return list;
}

static PyObject* heap_dump(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned int heap;
  int everything;
  if (!PyArg_ParseTuple(args, "Ip:heap_dump", &heap, &everything))
    return NULL;
  if (heap >= ST_HEAPS) {
    PyErr_SetString(PyExc_ValueError, "no such heap");
    return NULL;
  }
  struct st_heap_dump dump;
  if (!st_heap_hooks_dump(heap, everything, &dump))
    return PyErr_NoMemory();
  PyObject* rows = rows_list(&dump);
  free(dump.rows);
  return rows ? Py_BuildValue("(KKN)", (unsigned long long)dump.live,
                              (unsigned long long)dump.max, rows)
              : NULL;
}

static int append_function(PyObject* list, size_t number,
                           struct st_heap_function_total total) {
  PyObject* row =
      Py_BuildValue("(nKK)", (Py_ssize_t)number, (unsigned long long)total.live,
                    (unsigned long long)total.allocated);
  int result = row ? PyList_Append(list, row) : -1;
  Py_XDECREF(row);
  return result;
}

static PyObject* heap_functions(PyObject* Py_UNUSED(module), PyObject* least) {
  unsigned long long bytes = PyLong_AsUnsignedLongLong(least);
  if (bytes == (unsigned long long)-1 && PyErr_Occurred())
    return NULL;
  size_t count;
  struct st_heap_function_total* totals = st_heap_hooks_functions(&count);
  if (!totals)
    return PyErr_NoMemory();
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++)
    if (totals[i].allocated >= bytes && append_function(list, i + 1, totals[i]))
      Py_CLEAR(list);
  free(totals);
  return list;
}

static PyObject* heap_stats(PyObject* Py_UNUSED(module),
                            PyObject* Py_UNUSED(unused)) {
  struct st_heap_stats s = st_heap_hooks_stats();
  return Py_BuildValue("{sKsKsKsKsKsKsI}",                                  //
                       "live_full", (unsigned long long)s.drops.live_full,  //
                       "out_of_memory",
                       (unsigned long long)s.drops.out_of_memory,           //
                       "other_stacks", (unsigned long long)s.other_stacks,  //
                       "live", (unsigned long long)s.live,                  //
                       "stacks", (unsigned long long)s.stacks,              //
                       "interval", (unsigned long long)s.interval,          //
                       "slower", s.slower);
}

static PyObject* heap_stack(PyObject* Py_UNUSED(module), PyObject* number) {
  uint32_t frames[ST_HEAP_MAX_DEPTH];
  unsigned long n = PyLong_AsUnsignedLong(number);
  if (n == (unsigned long)-1 && PyErr_Occurred())
    return NULL;
  uint32_t depth =
      n <= UINT32_MAX ? st_heap_hooks_stack((uint32_t)n, frames) : 0;
  PyObject* tuple = PyTuple_New(depth);
  for (uint32_t i = 0; tuple && i < depth; i++) {
    PyObject* frame = PyLong_FromUnsignedLong(frames[i]);
    if (!frame)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, frame);
  }
  return tuple;
}

static PyObject* heap_frame(PyObject* Py_UNUSED(module), PyObject* number) {
  unsigned long n = PyLong_AsUnsignedLong(number);
  if (n == (unsigned long)-1 && PyErr_Occurred())
    return NULL;
  struct st_table_frame frame = st_heap_hooks_frame((uint32_t)n);
  return Py_BuildValue("(Ki)", (unsigned long long)frame.function,
                       (int)frame.line);
}

static PyObject* heap_function(PyObject* Py_UNUSED(module), PyObject* number) {
  unsigned long n = PyLong_AsUnsignedLong(number);
  if (n == (unsigned long)-1 && PyErr_Occurred())
    return NULL;
  struct st_heap_function function = st_heap_hooks_function((uint32_t)n);
  if (!function.name) {
    PyErr_SetString(PyExc_LookupError, "no such function");
    return NULL;
  }
  return Py_BuildValue("(OO)", function.name, function.file);
}

static PyMethodDef kFunctions[] = {
    {"heap_start", (PyCFunction)(void (*)(void))heap_start,
     METH_VARARGS | METH_KEYWORDS,
     "heap_start(interval, *, limit=0, max_interval=0, seed=0)\n--\n\n"
     "Sample allocations, on average one per `interval` bytes.  If samples "
     "take "
     "more than `limit` thousandths of the CPU time, the interval doubles, up "
     "to "
     "`max_interval`."},
    {"heap_unsampled", heap_unsampled, METH_O,
     "Call a function whose own allocations are left out of the profile."},
    {"heap_stop", heap_stop, METH_NOARGS,
     "Stop sampling, and forget all samples."},
    {"heap_dump", heap_dump, METH_VARARGS,
     "heap_dump(heap, everything)\n--\n\n"
     "Return (live bytes, their maximum, rows) of a heap: 0 raw, 1 mem, 2 obj. "
     " "
     "A row is (stack, allocated, freed, samples allocated, samples freed, "
     "bytes "
     "at the maximum, samples at the maximum) of a stack that has changed "
     "since "
     "the last dump."},
    {"heap_functions", heap_functions, METH_O,
     "Return (number, live bytes, bytes allocated) of each function that has "
     "allocated at least so many bytes, in all heaps."},
    {"heap_stats", heap_stats, METH_NOARGS,
     "Return counts since the start: dropped samples by reason, and sizes."},
    {"heap_stack", heap_stack, METH_O,
     "Return the numbers of a stack's frames, the outermost first."},
    {"heap_frame", heap_frame, METH_O, "Return (function, line) of a frame."},
    {"heap_function", heap_function, METH_O,
     "Return (qualified name, file) of a function."},
    {NULL, NULL, 0, NULL}};

int st_add_heap(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
