#include "bind/protozero/message_output.h"

#include "bind/common/errors.h"
#include "bind/data_path/trace_writer.h"

enum { FIRST_SLICE = 4096, MAX_FREE = 8 };

static struct output* free_outputs;
static int free_count;

/* Calls the file's write() and returns how many bytes were written: a raw file
 * or a socket may write only a part.  If write() does not return an int, all
 * bytes count as written.  Returns -1 with an exception set on failure. */
static Py_ssize_t write_some(PyObject* write, const char* data, size_t size) {
  PyObject* result = PyObject_CallFunction(write, "y#", data, (Py_ssize_t)size);
  if (!result)
    return -1;
  Py_ssize_t taken =
      PyLong_Check(result) ? PyLong_AsSsize_t(result) : (Py_ssize_t)size;
  Py_DECREF(result);
  if (PyErr_Occurred())
    return -1;
  if (taken > 0 && (size_t)taken <= size)
    return taken;
  PyErr_Format(PyExc_OSError, "write() reported that it took %zd bytes of %zd",
               taken, (Py_ssize_t)size);
  return -1;
}

/* Writes all bytes to the file.  Called while a message is open, so an
 * exception that is already set stays set. */
static bool write_to_file(void* self, const void* data, size_t size) {
  struct output* output = self;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  size_t written = 0;
  while (written < size) {
    Py_ssize_t taken =
        write_some(output->target, (const char*)data + written, size - written);
    if (taken < 0)
      break;
    written += (size_t)taken;
  }
  if (type)
    PyErr_Restore(type, value, traceback);
  return written == size;
}

static bool open_file(struct output* output, PyObject* destination) {
  output->target = PyObject_GetAttrString(destination, "write");
  if (!output->target) {
    PyErr_Format(PyExc_TypeError,
                 "a message can't be written to %R: give a writable buffer, "
                 "an object with write(), a TraceWriter, or nothing",
                 destination);
    return false;
  }
  output->kind = TO_FILE;
  st_file_stream_init(&output->file, &output->stream, write_to_file, output);
  return true;
}

static bool open_buffer(struct output* output, PyObject* destination) {
  if (PyObject_GetBuffer(destination, &output->buffer, PyBUF_WRITABLE) < 0)
    return false;
  output->kind = TO_BUFFER;
  st_stream_init_fixed(&output->stream, output->buffer.buf,
                       (size_t)output->buffer.len);
  return true;
}

static bool open_trace_writer(struct output* output, PyObject* destination) {
  struct st_message* packet = st_bind_trace_writer_begin(destination);
  if (!packet) {
    set_protocol_error(
        "the trace writer is closed, or has another packet open: end that "
        "first");
    return false;
  }
  output->kind = TO_TRACE_WRITER;
  output->target = Py_NewRef(destination);
  return true;
}

static bool open_destination(struct output* output, PyObject* destination) {
  if (!destination || destination == Py_None) {
    output->kind = TO_HEAP;
    st_stream_reset_heap(&output->stream, &output->heap, FIRST_SLICE);
    return true;
  }
  if (st_bind_is_trace_writer(destination))
    return open_trace_writer(output, destination);
  return PyObject_CheckBuffer(destination) ? open_buffer(output, destination)
                                           : open_file(output, destination);
}

static struct output* output_alloc(void) {
  if (!free_outputs)
    return PyMem_Calloc(1, sizeof(struct output));
  struct output* output = free_outputs;
  free_outputs = output->next_free;
  free_count--;
  return output;
}

/* Frees an output.  The first slice of its heap and the memory of its arena are
 * kept for the next output. */
static void output_free(struct output* output) {
  if (output->heap.first != output->heap.last)
    st_stream_reset_heap(&output->stream, &output->heap, FIRST_SLICE);
  if (ST_FREE_LISTS && free_count < MAX_FREE) {
    output->next_free = free_outputs;
    free_outputs = output;
    free_count++;
    return;
  }
  st_heap_stream_free(&output->heap);
  st_arena_free(&output->root);
  PyMem_Free(output);
}

/* Returns the stream of the open packet if the destination is a trace writer.
 * Otherwise returns the output's own stream. */
static struct st_stream_writer* stream_of(struct output* output) {
  return output->kind == TO_TRACE_WRITER
             ? &st_bind_trace_writer(output->target)->stream
             : &output->stream;
}

struct output* output_new(PyObject* destination) {
  struct output* output = output_alloc();
  if (!output) {
    PyErr_NoMemory();
    return NULL;
  }
  output->busy = output->is_complete = false;
  output->writers = 1;
  if (!open_destination(output, destination)) {
    output_free(output);
    return NULL;
  }
  output->root.serial++;
  st_message_init_root(&output->root.message, stream_of(output));
  return output;
}

static bool complete_file(struct output* output) {
  output->busy = true;
  bool written = st_file_stream_finish(&output->file, &output->stream);
  output->busy = false;
  st_file_stream_free(&output->file);
  return written;
}

static bool hand_over(struct output* output) {
  switch (output->kind) {
    case TO_HEAP:
      return true;
    case TO_BUFFER:
      PyBuffer_Release(&output->buffer);
      return true;
    case TO_FILE:
      return complete_file(output);
    case TO_TRACE_WRITER:
      /* A lost packet is no error here: the trace writer has counted it. */
      st_bind_trace_writer_end(output->target);
      return true;
  }
  return true;
}

bool output_complete(struct output* output) {
  if (output->is_complete)
    return true;
  output->is_complete = true;
  st_message_finalize(&output->root.message);
  if (output->kind == TO_HEAP && !output->stream.overflowed)
    return true;
  bool written = hand_over(output);
  Py_CLEAR(output->target);
  if (PyErr_Occurred())
    return false;
  uint64_t lost = output->stream.overflowed;
  if (output->kind == TO_TRACE_WRITER || (written && !lost))
    return true;
  set_protocol_error(
      "%llu bytes of the message didn't fit into its destination; it is not "
      "to be used. At most %u bytes fit anywhere",
      (unsigned long long)lost, ST_MAX_MESSAGE_SIZE);
  return false;
}

void output_release(struct output* output) {
  if (--output->writers > 0)
    return;
  if (!output->is_complete && output->kind != TO_HEAP) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!output_complete(output))
      PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
  }
  output_free(output);
}

PyObject* output_bytes(struct output* output) {
  const struct st_heap_stream* heap = &output->heap;
  size_t size = st_heap_stream_size(heap, &output->stream);
  bool is_whole = heap->first == heap->last && heap->first;
  PyObject* bytes = PyBytes_FromStringAndSize(
      is_whole ? (const char*)heap->first->bytes : NULL, (Py_ssize_t)size);
  if (bytes && !is_whole)
    st_heap_stream_copy(heap, &output->stream,
                        (uint8_t*)PyBytes_AS_STRING(bytes));
  return bytes;
}

bool output_append(struct output* output, struct st_message* message,
                   const void* data, size_t size) {
  output->busy = true;
  st_message_append_raw(message, data, size);
  output->busy = false;
  return output->kind != TO_FILE || !PyErr_Occurred();
}

bool output_append_bytes(struct output* output, struct st_message* message,
                         uint32_t field, const void* data, size_t size) {
  output->busy = true;
  st_message_append_bytes(message, field, data, size);
  output->busy = false;
  return output->kind != TO_FILE || !PyErr_Occurred();
}

struct st_arena_message* output_begin_nested(struct output* output,
                                             struct st_arena_message* parent,
                                             uint32_t field) {
  output->busy = true;
  struct st_arena_message* child = st_arena_begin_nested(parent, field);
  output->busy = false;
  if (!child)
    PyErr_NoMemory();
  return output->kind == TO_FILE && PyErr_Occurred() ? NULL : child;
}
