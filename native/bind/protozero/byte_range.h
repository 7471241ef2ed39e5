/* A range of bytes inside a Python object.  The object is kept alive, and its
 * buffer is locked against resizing.
 *
 * A range has an owner.  If the bytes are in a `bytes` object, the owner is
 * that object.  Otherwise the owner is a small object, which releases the
 * buffer when its last range is gone.  The parts of a range have the same
 * owner: nothing is copied. */
#pragma once

#include "bind/common/python.h"

struct byte_range {
  /* A strong reference to the owner of the bytes; NULL if the range is
   * empty. */
  PyObject* owner;
  const uint8_t* data;
  size_t size;
};

/* Makes a range of all bytes of a Python object.  Returns false with an
 * exception set on failure. */
bool byte_range_from(PyObject* object, struct byte_range* out);

/* Returns a part of a range.  The part has its own reference to the owner. */
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

/* Returns a new memoryview of the bytes in the range. */
PyObject* byte_range_view(const struct byte_range* range);
