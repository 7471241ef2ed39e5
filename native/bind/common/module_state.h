/* The state of the module: one struct per interpreter that imports it.
 *
 * The struct is zeroed when the module is created.  The GIL guards it.
 */
#pragma once

#include "bind/common/python.h"

struct st_ipc_thread_object;

struct st_bind_state {
  /* The head of a list linked by `next`. */
  struct st_ipc_thread_object* running_threads;
};

/* Returns the state of the module that the heap type `type` belongs to. */
static inline struct st_bind_state* st_bind_state(PyTypeObject* type) {
  return PyType_GetModuleState(type);
}
