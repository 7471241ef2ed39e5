/* Functions that pack a trace into the slices of ReadBuffers replies, and
 * unpack them.
 */
#include "core/trace_slices.h"
#include "bind/common/arguments.h"

typedef size_t (*convert)(const uint8_t* data, size_t size, size_t limit,
                          uint8_t* out, size_t* written);

/* Converts the bytes of `data` from `start` on.  Returns the tuple (converted
 * bytes, position of the first unconverted byte). */
static PyObject* convert_rest(convert function, const Py_buffer* data,
                              int64_t start, size_t limit) {
  uint8_t* out = PyMem_Malloc(limit);
  if (!out)
    return PyErr_NoMemory();
  size_t written;
  size_t taken = function((const uint8_t*)data->buf + start,
                          (size_t)(data->len - start), limit, out, &written);
  PyObject* result = Py_BuildValue("y#L", (const char*)out, (Py_ssize_t)written,
                                   (long long)start + (long long)taken);
  PyMem_Free(out);
  return result;
}

static PyObject* pack_slices(PyObject* Py_UNUSED(module), PyObject* const* args,
                             Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 3, "pack_slices", "trace", "start", "limit");
  PyObject* in[3];
  Py_buffer trace;
  int64_t start, limit;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[2], "limit", 0, INT32_MAX, &limit) ||
      !st_bind_bytes(in[0], "trace", &trace))
    return NULL;
  PyObject* result = NULL;
  if (st_bind_integer(in[1], "start", 0, trace.len, &start))
    result = convert_rest(st_slices_pack, &trace, start, (size_t)limit);
  PyBuffer_Release(&trace);
  return result;
}

static size_t join(const uint8_t* reply, size_t size, size_t limit,
                   uint8_t* out, size_t* written) {
  /* The argument `limit` is unused: the output is never longer than the
   * reply. */
  (void)limit;
  return st_slices_join(reply, size, out, written);
}

static PyObject* join_slices(PyObject* Py_UNUSED(module), PyObject* const* args,
                             Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "join_slices", "reply", "start");
  PyObject* in[2];
  Py_buffer reply;
  int64_t start;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_bytes(in[0], "reply", &reply))
    return NULL;
  PyObject* result = NULL;
  if (st_bind_integer(in[1], "start", 0, reply.len, &start))
    result = convert_rest(join, &reply, start, (size_t)(reply.len - start));
  PyBuffer_Release(&reply);
  return result;
}

static PyMethodDef kFunctions[] = {
    ST_BIND_KEYWORDS("pack_slices", pack_slices, NULL),
    ST_BIND_KEYWORDS("join_slices", join_slices, NULL),
    {0},
};

ST_BIND_PART(trace_slices) {
  return PyModule_AddFunctions(module, kFunctions);
}
