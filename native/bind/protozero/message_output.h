/* Output: the destination of a message that Python code writes.
 *
 * The writers of a root message and of its nested messages share one output.
 * The last of these writers frees it:
 *
 *   writer (root)  --.
 *   writer (nested) -+-> output: stream, arena of open messages, destination
 *   writer (stale)  -'
 *
 * Destinations: a heap of its own (None), a writable buffer, an object with a
 * `write` method, or a stretto._native.TraceWriter, where the root is a packet.
 *
 * A destination may run Python code or release the GIL while a field is
 * appended.  `busy` is set meanwhile and makes other writes fail. */
#pragma once

#include "bind/common/python.h"
#include "core/file_stream.h"
#include "core/message_arena.h"

enum output_kind { TO_HEAP, TO_BUFFER, TO_FILE, TO_TRACE_WRITER };

struct output {
  struct st_stream_writer stream;
  struct st_arena_message root;
  enum output_kind kind;
  bool busy;
  /* Whether the destination has received all bytes of the message. */
  bool is_complete;
  Py_ssize_t writers;
  struct st_heap_stream heap;
  struct st_file_stream file;
  Py_buffer buffer;
  /* The destination: the write method of a file, or a TraceWriter. */
  PyObject* target;
  struct output* next_free;
};

/* Opens a destination and its root message.  Returns NULL with an exception set
 * on failure. */
struct output* output_new(PyObject* destination);

/* Drops a writer's reference to the output.  The last call completes the output
 * and frees it.  A pending exception stays set; an error of the destination
 * goes to sys.unraisablehook. */
void output_release(struct output* output);

/* Ends the root message and writes the remaining bytes to the destination.
 * Returns false with an exception set on failure. */
bool output_complete(struct output* output);

/* Returns the bytes of an output on the heap, which must be complete. */
PyObject* output_bytes(struct output* output);

/* The functions below append data to a message, and may call the output's
 * destination.  They return false (or NULL) with an exception set on
 * failure. */
bool output_append(struct output* output, struct st_message* message,
                   const void* data, size_t size);
bool output_append_bytes(struct output* output, struct st_message* message,
                         uint32_t field, const void* data, size_t size);
struct st_arena_message* output_begin_nested(struct output* output,
                                             struct st_arena_message* parent,
                                             uint32_t field);
