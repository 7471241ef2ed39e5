/* The Python type MessageWriter and the fields of its generated subclasses. */
#pragma once

#include "bind/common/python.h"
#include "bind/protozero/message_output.h"

/* A handle on a message.  The handle is stale if its serial differs from the
 * serial of the message (message_arena.h). */
struct message_writer {
  PyObject_HEAD
  struct output* output;
  struct st_arena_message* at;
  uint64_t serial;
};

extern PyTypeObject* message_writer_type;

/* The largest field number that protobuf allows. */
enum { ST_MAX_NUMBER = (1 << 29) - 1 };

/* Opens a message nested in `parent`, and returns its writer.  Returns NULL
 * with an exception set on failure. */
PyObject* message_writer_open(PyTypeObject* type, struct message_writer* parent,
                              uint32_t field);

/* Returns true if the message is open and no write to its output is in
 * progress.  Otherwise counts a misuse, and sets an exception if misuse raises
 * (-X dev). */
bool message_writer_is_open(const struct message_writer* w);

/* Appends encoded fields to the message, as st_message_append_raw does.
 * Returns false with an exception set on failure. */
bool message_writer_append(struct message_writer* w, const void* data,
                           size_t size);
/* Appends a delimited field with its tag to the message.  Errors are those of
 * message_writer_append. */
bool message_writer_append_bytes(struct message_writer* w, uint32_t field,
                                 const void* data, size_t size);

/* Returns room in the current buffer of the message.  Returns NULL if the
 * caller has to use the slow path. */
static inline uint8_t* message_writer_room(const struct message_writer* w,
                                           size_t size) {
  return w->at->serial == w->serial && !w->output->busy
             ? st_message_room(&w->at->message, size)
             : NULL;
}

/* Installs the fast constructor in a subclass of MessageWriter. */
void message_writer_finish_type(PyTypeObject* type);
