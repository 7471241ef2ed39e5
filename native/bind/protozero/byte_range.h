/* Bytes inside some Python object, which is kept alive and as it is.
 *
 * Of bytes the object itself is the owner; of any other buffer it is a small
 * object that holds the buffer until the last range is gone.  Parts of a range
 * share its owner: nothing is copied. */
#pragma once

#include "bind/common/python.h"

struct byte_range {
  PyObject* owner; /* strong; NULL: no bytes */
  const uint8_t* data;
  size_t size;
};

/* All bytes of an object.  False: exception set. */
bool byte_range_from(PyObject* object, struct byte_range* out);

/* A part with a reference of its own. */
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

/* A memoryview of it. */
PyObject* byte_range_view(const struct byte_range* range);
