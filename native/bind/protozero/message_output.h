/* Where the bytes of a message go that Python code writes.
 *
 * An output is shared by the writers of a root message and of everything
 * nested in it, and lives as long as one of them does:
 *
 *   writer (root)  --.
 *   writer (nested) -+-> output: stream, arena of open messages, destination
 *   writer (stale)  -'
 *
 * Destinations: a heap of its own (None), a writable buffer, an object with a
 * `write` method, or a stretto._native.TraceWriter, where the root is a packet.
 *
 * A destination may run Python code or let go of the GIL while a field is
 * being appended; `busy` keeps others out meanwhile. */
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
  bool is_complete; /* the destination has got everything */
  Py_ssize_t writers;
  struct st_heap_stream heap;
  struct st_file_stream file;
  Py_buffer buffer;
  PyObject* target; /* a file's write method, or a TraceWriter */
  struct output* next_free;
};

/* With an open root.  NULL: exception set. */
struct output* output_new(PyObject* destination);

/* One writer less; the last one completes and frees it.  A pending exception
 * stays; one of the destination's goes to sys.unraisablehook. */
void output_release(struct output* output);

/* Ends the root and hands over what is left.  False: exception set. */
bool output_complete(struct output* output);

/* The bytes of a complete heap. */
PyObject* output_bytes(struct output* output);

/* Appends that may call the destination.  False: exception set. */
bool output_append(struct output* output, struct st_message* message,
                   const void* data, size_t size);
bool output_append_bytes(struct output* output, struct st_message* message,
                         uint32_t field, const void* data, size_t size);
struct st_arena_message* output_begin_nested(struct output* output,
                                             struct st_arena_message* parent,
                                             uint32_t field);
