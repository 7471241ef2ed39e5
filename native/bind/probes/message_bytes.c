#include "bind/probes/message_bytes.h"

enum { FIRST_CAPACITY = 1 << 14 };

void message_bytes_begin(struct message_bytes* m) {
  st_stream_reset_heap(&m->stream, &m->heap, FIRST_CAPACITY);
  st_message_init_root(&m->root, &m->stream);
}

PyObject* message_bytes_take(struct message_bytes* m) {
  st_message_finalize(&m->root);
  if (m->stream.overflowed)
    return PyErr_NoMemory();
  size_t size = st_heap_stream_size(&m->heap, &m->stream);
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (bytes)
    st_heap_stream_copy(&m->heap, &m->stream,
                        (uint8_t*)PyBytes_AS_STRING(bytes));
  return bytes;
}

const uint8_t* message_bytes_view(struct message_bytes* m, size_t* size) {
  st_message_finalize(&m->root);
  *size = st_heap_stream_size(&m->heap, &m->stream);
  const uint8_t* bytes =
      m->stream.overflowed ? NULL : st_heap_stream_join(&m->heap, &m->stream);
  if (!bytes)
    PyErr_NoMemory();
  return bytes;
}

void message_bytes_free(struct message_bytes* m) {
  st_heap_stream_free(&m->heap);
}
