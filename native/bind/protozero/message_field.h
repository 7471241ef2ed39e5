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
  /* check(value); of a nested message: returns its writer class */
  PyObject* helper;
  /* the nested message's writer class; NULL until first used */
  PyTypeObject* writer;
  PyMethodDef method; /* the field's row in the writer class */
  enum value_kind kind;
  uint32_t number;
  uint64_t small_max; /* ints from 0 to this are encoded as plain varints */
  uint8_t tag_size;
  uint8_t tag[8]; /* copied whole; tag_size bytes count */
};

/* Returns a new field from the tuple (method, number, kind, is packed, helper).
 * NULL with an exception set on failure. */
struct message_field* message_field_new(PyObject* row);
