/* The Python type MessageWriter and the fields of its generated subclasses. */
#pragma once

#include "bind/common/python.h"
#include "bind/protozero/message_output.h"

/* A handle on a message: stale when the serials differ (message_arena.h). */
struct message_writer {
  PyObject_HEAD
  struct output* output;
  struct st_arena_message* at;
  uint64_t serial;
};

extern PyTypeObject* message_writer_type;

/* The largest field number there is. */
enum { ST_MAX_NUMBER = (1 << 29) - 1 };

/* Opens a message below `parent`.  NULL: exception set. */
PyObject* message_writer_open(PyTypeObject* type, struct message_writer* parent,
                              uint32_t field);

/* True: the message is open, and nobody else is at it.  Otherwise that is
 * counted, and, where misuse raises, an exception set. */
bool message_writer_is_open(const struct message_writer* w);

/* As st_message_append_raw.  False: exception set. */
bool message_writer_append(struct message_writer* w, const void* data,
                           size_t size);
/* A delimited field with its tag. */
bool message_writer_append_bytes(struct message_writer* w, uint32_t field,
                                 const void* data, size_t size);

/* Room in the current buffer, or NULL: take the slow way. */
static inline uint8_t* message_writer_room(const struct message_writer* w,
                                           size_t size) {
  return w->at->serial == w->serial && !w->output->busy
             ? st_message_room(&w->at->message, size)
             : NULL;
}

/* Gives a type made from MessageWriter its fast constructor. */
void message_writer_finish_type(PyTypeObject* type);
