/* tokenize(), scan_trace(), source_reports() and source_locations(): walk over
 * the packets of a whole trace.
 *
 * They take any contiguous bytes, copy nothing, and stop at the first packet
 * that is incomplete or malformed; the result holds the position of that
 * packet.
 */
#include "core/trace_scan.h"
#include "bind/common/arguments.h"
#include "core/wire.h"

/* Returns the position after the packet at p.  Returns NULL if the packet is
 * not complete. */
static const uint8_t* skip_packet(const uint8_t* p, const uint8_t* end) {
  /* The encoded tag of the field Trace.packet. */
  enum { PACKET_TAG = 0x0a };
  if (p == end || *p++ != PACKET_TAG)
    return NULL;
  uint64_t size;
  p = st_get_varint(p, end, &size);
  return p && size <= (size_t)(end - p) ? p + size : NULL;
}

static PyObject* tokenize(PyObject* Py_UNUSED(module), PyObject* data) {
  Py_buffer trace;
  if (!st_bind_bytes(data, "data", &trace))
    return NULL;
  const uint8_t* parsed = trace.buf;
  const uint8_t* end = parsed + trace.len;
  Py_ssize_t packets = 0;
  Py_BEGIN_ALLOW_THREADS
  const uint8_t* next;
  while ((next = skip_packet(parsed, end))) {
    parsed = next;
    packets++;
  }
  Py_END_ALLOW_THREADS
  Py_ssize_t size = parsed - (const uint8_t*)trace.buf;
  PyBuffer_Release(&trace);
  return Py_BuildValue("nn", packets, size);
}

/* The bytes of some packets, as lists. */
struct found {
  PyObject *compressed, *descriptors;
};

static void add_bytes(PyObject* list, const uint8_t* data, size_t size) {
  if (PyErr_Occurred())
    return;
  PyObject* bytes =
      PyBytes_FromStringAndSize((const char*)data, (Py_ssize_t)size);
  if (bytes)
    PyList_Append(list, bytes);
  Py_XDECREF(bytes);
}

static void add_descriptor(void* found, const uint8_t* data, size_t size) {
  add_bytes(((struct found*)found)->descriptors, data, size);
}

static void add_compressed(void* found, const uint8_t* data, size_t size) {
  add_bytes(((struct found*)found)->compressed, data, size);
}

static PyObject* scan_trace(PyObject* Py_UNUSED(module), PyObject* data) {
  Py_buffer trace;
  if (!st_bind_bytes(data, "data", &trace))
    return NULL;
  struct found found = {PyList_New(0), PyList_New(0)};
  struct st_trace_scan scan = {.first_ns = UINT64_MAX,
                               .on_descriptor = add_descriptor,
                               .on_compressed = add_compressed,
                               .context = &found};
  size_t parsed = 0;
  if (found.compressed && found.descriptors)
    parsed = st_trace_scan(&scan, trace.buf, (size_t)trace.len);
  PyBuffer_Release(&trace);
  if (PyErr_Occurred()) {
    Py_XDECREF(found.compressed);
    Py_XDECREF(found.descriptors);
    return NULL;
  }
  return Py_BuildValue("KKKKnNN", (unsigned long long)scan.track_events,
                       (unsigned long long)scan.drops,
                       (unsigned long long)scan.first_ns,
                       (unsigned long long)scan.log_texts, (Py_ssize_t)parsed,
                       found.compressed, found.descriptors);
}

/* What data sources tell about themselves, as lists. */
struct reports {
  PyObject *compressed, *ftrace_stats, *notes, *tracks;
};

static void add_packed_reports(void* reports, const uint8_t* data,
                               size_t size) {
  add_bytes(((struct reports*)reports)->compressed, data, size);
}

static void add_ftrace_stats(void* reports, const uint8_t* data, size_t size) {
  add_bytes(((struct reports*)reports)->ftrace_stats, data, size);
}

static void add_note(void* reports, const uint8_t* data, size_t size) {
  add_bytes(((struct reports*)reports)->notes, data, size);
}

static void add_notes_track(void* reports, const uint8_t* data, size_t size) {
  add_bytes(((struct reports*)reports)->tracks, data, size);
}

static PyObject* source_reports(PyObject* Py_UNUSED(module),
                                PyObject* arguments) {
  Py_buffer trace;
  unsigned int notes;
  if (!PyArg_ParseTuple(arguments, "y*I:source_reports", &trace, &notes))
    return NULL;
  struct reports found = {PyList_New(0), PyList_New(0), PyList_New(0),
                          PyList_New(0)};
  struct st_trace_scan scan = {.on_compressed = add_packed_reports,
                               .on_ftrace_stats = add_ftrace_stats,
                               .on_note = add_note,
                               .on_notes_track = add_notes_track,
                               .notes = notes,
                               .context = &found};
  size_t parsed = 0;
  if (found.compressed && found.ftrace_stats && found.notes && found.tracks)
    parsed = st_trace_scan(&scan, trace.buf, (size_t)trace.len);
  PyBuffer_Release(&trace);
  if (PyErr_Occurred()) {
    Py_XDECREF(found.compressed);
    Py_XDECREF(found.ftrace_stats);
    Py_XDECREF(found.notes);
    Py_XDECREF(found.tracks);
    return NULL;
  }
  return Py_BuildValue("nNNNN", (Py_ssize_t)parsed, found.compressed,
                       found.ftrace_stats, found.notes, found.tracks);
}

static void add_location(void* set, const uint8_t* data, size_t size) {
  if (PyErr_Occurred())
    return;
  PyObject* location =
      PyBytes_FromStringAndSize((const char*)data, (Py_ssize_t)size);
  if (location)
    PySet_Add(set, location);
  Py_XDECREF(location);
}

static PyObject* source_locations(PyObject* Py_UNUSED(module), PyObject* data) {
  Py_buffer trace;
  if (!st_bind_bytes(data, "data", &trace))
    return NULL;
  PyObject* set = PySet_New(NULL);
  struct st_trace_scan scan = {.on_location = add_location, .context = set};
  size_t parsed = set ? st_trace_scan(&scan, trace.buf, (size_t)trace.len) : 0;
  PyBuffer_Release(&trace);
  if (!set || PyErr_Occurred()) {
    Py_XDECREF(set);
    return NULL;
  }
  return Py_BuildValue("nN", (Py_ssize_t)parsed, set);
}

static PyMethodDef kFunctions[] = {
    {"tokenize", tokenize, METH_O, NULL},
    {"scan_trace", scan_trace, METH_O, NULL},
    {"source_reports", source_reports, METH_VARARGS, NULL},
    {"source_locations", source_locations, METH_O, NULL},
    {0},
};

ST_BIND_PART(trace_scan) {
  return PyModule_AddFunctions(module, kFunctions);
}
