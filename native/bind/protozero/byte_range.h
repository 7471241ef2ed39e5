/* A range of bytes inside a Python object.  The object is kept alive, and its
 * buffer is locked against resizing.
 *
 * The owner of a `bytes` object's range is the object itself.  For any other
 * buffer it is a small object that releases the buffer with the last range.
 * Parts of a range share its owner: nothing is copied. */
#pragma once

#include "bind/common/python.h"

struct byte_range {
  PyObject* owner; /* A strong reference; NULL if the range is empty. */
  const uint8_t* data;
  size_t size;
};

/* Makes the range of all bytes of an object.  Returns false with an exception
 * set on failure. */
bool byte_range_from(PyObject* object, struct byte_range* out);

/* Returns a part of a range, with a reference of its own to the owner. */
static inline struct byte_range byte_range_part(const struct byte_range* whole,
                                                const uint8_t* data,
                                                size_t size) {
  return (struct byte_range){Py_XNewRef(whole->owner), data, size};
}

static inline void byte_range_clear(struct byte_range* range) {
  Py_CLEAR(range->owner);
  range->data = NULL;
  range->size = 0;
}

/* Returns a new memoryview of the range. */
PyObject* byte_range_view(const struct byte_range* range);
