/* Counters of the core as Python dicts, for the stats() methods.
 */
#pragma once

#include "bind/common/python.h"

/* The name and offset of a uint64_t field of a struct.  The last entry of an
 * array has a NULL name. */
struct st_bind_counter {
  const char* name;
  size_t offset;
};

PyObject* st_bind_counters(const struct st_bind_counter* counters,
                           const void* values);
int st_bind_set_counter(PyObject* dict, const char* name, uint64_t value);
