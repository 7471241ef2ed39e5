/* The Python type of one field of a generated writer: each field has one method
 * of the writer class, which appends a value or opens a nested message. */
#pragma once

#include "bind/protozero/message_value.h"
#include "bind/protozero/message_writer.h"

struct message_field {
  PyObject_HEAD
  /* Appends `value`, or opens a nested message (kind VALUE_MESSAGE). */
  PyObject* (*append)(struct message_field* f, struct message_writer* w,
                      PyObject* value);
  PyObject* name;
  /* check(value); for a nested message, a function that returns its writer
   * class. */
  PyObject* helper;
  /* The nested message's writer class; NULL until it is used first. */
  PyTypeObject* writer;
  PyMethodDef method; /* The field's method in the writer class. */
  enum value_kind kind;
  uint32_t number;
  uint64_t small_max; /* Ints from 0 to this are written as varints at once. */
  uint8_t tag_size;
  uint8_t tag[8]; /* Copied as a whole; `tag_size` bytes of it count. */
};

/* Returns a new field from the tuple (method, number, kind, is packed, helper).
 * NULL with an exception set on failure. */
struct message_field* message_field_new(PyObject* row);
