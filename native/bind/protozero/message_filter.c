/* The Python type MessageFilter: removes from messages those fields that a
 * bytecode denies.
 *
 * Large messages are filtered without the GIL.
 */
#include <stdlib.h>

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "core/message_filter.h"

/* A message above this size is filtered without the GIL.  For a smaller one,
 * getting the GIL back from a busy thread would take longer than the
 * filtering. */
enum { MIN_BYTES_WITHOUT_GIL = 128 * 1024, MAX_ROOT_FIELDS = 16 };

struct message_filter {
  PyObject_HEAD
  struct st_filter_bytecode bytecode;
  struct st_message_filter filter;
  /* The Python callable that rewrites strings, or NULL. */
  PyObject* string_filter;
};

static bool is_same_size(PyObject* result, size_t size) {
  if (PyBytes_Check(result) && (size_t)PyBytes_Size(result) == size)
    return true;
  PyErr_SetString(PyExc_ValueError,
                  "string_filter must return None or bytes of the size that "
                  "it was given");
  return false;
}

static bool rewrite(void* context, uint8_t* data, size_t size,
                    uint32_t semantic_type) {
  struct message_filter* self = context;
  PyObject* result = PyObject_CallFunction(self->string_filter, "y#I", data,
                                           (Py_ssize_t)size, semantic_type);
  if (!result)
    return false;
  bool ok = result == Py_None || is_same_size(result, size);
  if (ok && result != Py_None)
    memcpy(data, PyBytes_AsString(result), size);
  Py_DECREF(result);
  return ok;
}

static bool load(struct message_filter* self, PyObject* code,
                 PyObject* overlay) {
  Py_buffer code_bytes, overlay_bytes = {0};
  if (!st_bind_bytes(code, "bytecode", &code_bytes))
    return false;
  if (overlay && !st_bind_bytes(overlay, "overlay", &overlay_bytes)) {
    PyBuffer_Release(&code_bytes);
    return false;
  }
  const char* error = st_filter_bytecode_load(
      &self->bytecode, code_bytes.buf, (size_t)code_bytes.len,
      overlay_bytes.buf, (size_t)overlay_bytes.len);
  PyBuffer_Release(&code_bytes);
  if (overlay)
    PyBuffer_Release(&overlay_bytes);
  if (error)
    PyErr_Format(PyExc_ValueError, "the filter bytecode can't be used: %s",
                 error);
  return !error;
}

static bool set_string_filter(struct message_filter* self, PyObject* callable) {
  if (!callable || callable == Py_None)
    return true;
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "string_filter must be callable, not %R",
                 (PyObject*)Py_TYPE(callable));
    return false;
  }
  Py_INCREF(callable);
  self->string_filter = callable;
  self->filter.string_filter = rewrite;
  self->filter.context = self;
  return true;
}

static PyObject* filter_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 1, "MessageFilter", "bytecode", "overlay",
                    "string_filter");
  PyObject* in[3];
  if (!st_bind_new_arguments(&signature, args, kwargs, in))
    return NULL;
  struct message_filter* self =
      (struct message_filter*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  self->filter.bytecode = &self->bytecode;
  if (!load(self, in[0], in[1]) || !set_string_filter(self, in[2])) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static int filter_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(((struct message_filter*)object)->string_filter);
  return 0;
}

/* Drops the Python callable.  The C string filter `rewrite` stays installed: a
 * later run then fails, rather than letting strings pass unfiltered. */
static int filter_clear(PyObject* object) {
  struct message_filter* self = (struct message_filter*)object;
  Py_CLEAR(self->string_filter);
  return 0;
}

static void filter_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  filter_clear(object);
  st_filter_bytecode_free(&((struct message_filter*)object)->bytecode);
  st_bind_free(object);
}

static PyObject* filter_set_root(PyObject* object, PyObject* path) {
  struct message_filter* self = (struct message_filter*)object;
  uint32_t fields[MAX_ROOT_FIELDS];
  Py_ssize_t count = PySequence_Size(path);
  if (count < 0)
    return NULL;
  for (Py_ssize_t i = 0; i < count && i < MAX_ROOT_FIELDS; i++) {
    PyObject* item = PySequence_GetItem(path, i);
    int64_t field = 0;
    bool ok = item && st_bind_integer(item, "a field", 1, UINT32_MAX, &field);
    Py_XDECREF(item);
    if (!ok)
      return NULL;
    fields[i] = (uint32_t)field;
  }
  if (count > MAX_ROOT_FIELDS ||
      !st_message_filter_set_root(&self->filter, fields, (size_t)count)) {
    PyErr_Format(PyExc_ValueError,
                 "the filter has no message at the path %R: allow it, as a "
                 "nested field",
                 path);
    return NULL;
  }
  Py_RETURN_NONE;
}

static PyObject* describe(uint32_t rule) {
  if (rule == ST_FILTER_DENIED)
    Py_RETURN_NONE;
  if (rule == ST_FILTER_RULE_SIMPLE)
    return Py_BuildValue("sI", "simple", 0u);
  if (st_filter_is_string(rule))
    return Py_BuildValue("sI", "string", st_filter_semantic_type(rule));
  return Py_BuildValue("sI", "nested", st_filter_nested_message(rule));
}

static PyObject* filter_query(PyObject* object, PyObject* const* args,
                              Py_ssize_t count, PyObject* kwnames) {
  ST_BIND_SIGNATURE(signature, 2, "query", "message", "field");
  struct message_filter* self = (struct message_filter*)object;
  PyObject* in[2];
  int64_t message, field;
  if (!st_bind_arguments(&signature, args, count, kwnames, in) ||
      !st_bind_integer(in[0], "message", 0, UINT32_MAX, &message) ||
      !st_bind_integer(in[1], "field", 0, UINT32_MAX, &field))
    return NULL;
  return describe(st_filter_bytecode_query(&self->bytecode, (uint32_t)message,
                                           (uint32_t)field));
}

static PyObject* get_messages(PyObject* object, void* Py_UNUSED(closure)) {
  struct message_filter* self = (struct message_filter*)object;
  return PyLong_FromSize_t(st_filter_bytecode_messages(&self->bytecode));
}

static PyObject* filter_message(PyObject* object, PyObject* data) {
  struct message_filter* self = (struct message_filter*)object;
  Py_buffer in;
  if (!st_bind_bytes(data, "data", &in))
    return NULL;
  uint8_t* out = malloc((size_t)in.len + 1);
  size_t size = 0;
  enum st_filter_result result = ST_FILTER_STOPPED;
  if (out)
    result = st_message_filter_run(&self->filter, in.buf, (size_t)in.len, out,
                                   &size);
  else
    PyErr_NoMemory();
  PyBuffer_Release(&in);
  PyObject* filtered = NULL;
  if (result == ST_FILTER_DONE)
    filtered = PyBytes_FromStringAndSize((char*)out, (Py_ssize_t)size);
  else if (result == ST_FILTER_MALFORMED)
    filtered = Py_NewRef(Py_None);
  free(out);
  return filtered;
}

static bool run_trace(struct message_filter* self, const Py_buffer* in,
                      uint8_t* out, struct st_filter_counts* counts) {
  const struct st_message_filter* filter = &self->filter;
  if (filter->string_filter || in->len < MIN_BYTES_WITHOUT_GIL)
    return st_message_filter_run_trace(filter, in->buf, (size_t)in->len, out,
                                       counts);
  bool ok;
  Py_BEGIN_ALLOW_THREADS
  ok = st_message_filter_run_trace(filter, in->buf, (size_t)in->len, out,
                                   counts);
  Py_END_ALLOW_THREADS
  return ok;
}

static PyObject* filter_trace(PyObject* object, PyObject* trace) {
  struct message_filter* self = (struct message_filter*)object;
  Py_buffer in;
  if (!st_bind_bytes(trace, "trace", &in))
    return NULL;
  uint8_t* out = malloc((size_t)in.len + 1);
  struct st_filter_counts counts = {0};
  bool ok = false;
  if (!out)
    PyErr_NoMemory();
  else if (!(ok = run_trace(self, &in, out, &counts)) && !PyErr_Occurred())
    PyErr_SetString(PyExc_ValueError, "the trace isn't a row of whole packets");
  PyBuffer_Release(&in);
  PyObject* result = NULL;
  if (ok)
    result = Py_BuildValue("y#KKKK", out, (Py_ssize_t)counts.out_size,
                           (unsigned long long)counts.packets,
                           (unsigned long long)counts.malformed,
                           (unsigned long long)counts.packet_bytes,
                           (unsigned long long)counts.filtered_bytes);
  free(out);
  return result;
}

static PyMethodDef kMethods[] = {
    {"set_root", filter_set_root, METH_O, NULL},
    ST_BIND_KEYWORDS("query", filter_query, NULL),
    {"filter", filter_message, METH_O, NULL},
    {"filter_trace", filter_trace, METH_O, NULL},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"messages", get_messages, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, filter_new},
    {Py_tp_dealloc, filter_dealloc},
    {Py_tp_traverse, filter_traverse},
    {Py_tp_clear, filter_clear},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_doc, "Copies messages without the fields that a bytecode denies."},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("MessageFilter", struct message_filter,
                 Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC, kSlots);

ST_BIND_PART(message_filter) {
  return st_bind_add_type(module, &kSpec);
}
