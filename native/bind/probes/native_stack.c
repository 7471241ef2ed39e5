/* native_stack(pid, ranges, pc, sp): an address in each call of a thread that
 * waits, the innermost first.  `ranges` is a list of (start, end, header). */
#include "probes/native_stack.h"

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/probes/code_ranges.h"
#include "probes/process_memory.h"

static PyObject* tuple_of(const uint64_t* pcs, int depth) {
  PyObject* tuple = PyTuple_New(depth);
  for (int i = 0; tuple && i < depth; i++) {
    PyObject* pc = PyLong_FromUnsignedLongLong(pcs[i]);
    if (pc)
      PyTuple_SET_ITEM(tuple, i, pc);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* native_stack(PyObject* Py_UNUSED(module),
                              PyObject* const* args, Py_ssize_t count,
                              PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 4, "native_stack", "pid", "ranges", "pc", "sp");
  PyObject* in[4];
  int64_t pid, pc, sp;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[0], "pid", 1, INT32_MAX, &pid) ||
      !st_bind_integer(in[2], "pc", 0, INT64_MAX, &pc) ||
      !st_bind_integer(in[3], "sp", 0, INT64_MAX, &sp))
    return NULL;
  struct st_code_range* ranges =
      PyMem_New(struct st_code_range, ST_MAP_MAX_RANGES);
  if (!ranges)
    return PyErr_NoMemory();
  int range_count = st_bind_code_ranges(in[1], ranges), depth = 0;
  uint64_t pcs[ST_NATIVE_MAX_DEPTH];
  if (range_count >= 0) {
    struct st_process_memory process = {.pid = (int)pid};
    struct st_memory memory = st_process_source(&process);
    Py_BEGIN_ALLOW_THREADS
    depth = st_native_stack(&memory, ranges, range_count, (uint64_t)pc,
                            (uint64_t)sp, pcs);
    Py_END_ALLOW_THREADS
  }
  PyMem_Free(ranges);
  return range_count < 0 ? NULL : tuple_of(pcs, depth);
}

static PyMethodDef kFunctions[] = {
    ST_BIND_KEYWORDS("native_stack", native_stack, NULL),
    {0},
};

ST_BIND_PART(native_stack) {
  return PyModule_AddFunctions(module, kFunctions);
}
