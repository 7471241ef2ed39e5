/* The Python type of one field of a generated writer: each field has one method
 * of the writer class, which appends a value or opens a nested message. */
#pragma once

#include "bind/protozero/message_value.h"
#include "bind/protozero/message_writer.h"

struct message_field {
  PyObject_HEAD
  /* Appends `value` to a message, or opens a nested message (kind
   * VALUE_MESSAGE). */
  PyObject* (*append)(struct message_field* f, struct message_writer* w,
                      PyObject* value);
  PyObject* name;
  /* A Python function: check(value).  For a nested message, a function that
   * returns the writer class of the message. */
  PyObject* helper;
  /* The writer class of the nested message; NULL until it is used first. */
  PyTypeObject* writer;
  /* The method that appends this field: its row in the writer class's method
   * table. */
  PyMethodDef method;
  enum value_kind kind;
  uint32_t number;
  /* An int from 0 to this limit is written as a varint, without a call of
   * `helper`. */
  uint64_t small_max;
  uint8_t tag_size;
  /* The encoded tag.  All eight bytes are copied, of which `tag_size` are
   * used. */
  uint8_t tag[8];
};

/* Returns a new field from the tuple (method, number, kind, is packed, helper).
 * NULL with an exception set on failure. */
struct message_field* message_field_new(PyObject* row);
