/* Counters of the core as Python dicts, for the stats() methods.
 */
#pragma once

#include "bind/common/python.h"

/* A uint64_t field of a struct.  An array of them ends with a NULL name. */
struct st_bind_counter {
  const char* name;
  size_t offset;
};

PyObject* st_bind_counters(const struct st_bind_counter* counters,
                           const void* values);
int st_bind_set_counter(PyObject* dict, const char* name, uint64_t value);
