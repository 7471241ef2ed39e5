/* A field of a generated writer: what one of its methods appends. */
#pragma once

#include "bind/protozero/message_value.h"
#include "bind/protozero/message_writer.h"

struct message_field {
  PyObject_HEAD
  /* Appends a value, or, without one, opens a message. */
  PyObject* (*append)(struct message_field* f, struct message_writer* w,
                      PyObject* value);
  PyObject* name;
  PyObject* helper;     /* check(value); of a message: its writer, by call */
  PyTypeObject* writer; /* of a message, once it was needed */
  PyMethodDef method;   /* for the class of writers */
  enum value_kind kind;
  uint32_t number;
  uint64_t small_max; /* ints from 0 to this are their own varints */
  uint8_t tag_size;
  uint8_t tag[8]; /* copied whole */
};

/* From (method, number, kind, is packed, helper).  NULL: exception set. */
struct message_field* message_field_new(PyObject* row);
