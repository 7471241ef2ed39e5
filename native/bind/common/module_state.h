/* The state of the module: one struct per interpreter that imports it.
 *
 * The struct is zeroed when the module is created.  The GIL guards it.
 */
#pragma once

#include "bind/common/python.h"

struct st_ipc_thread_object;

struct st_bind_state {
  /* The first object in the list of running IPC threads.  Their member `next`
   * links them. */
  struct st_ipc_thread_object* running_threads;
};

/* Returns the state of the module in which the heap type `type` is defined. */
static inline struct st_bind_state* st_bind_state(PyTypeObject* type) {
  return PyType_GetModuleState(type);
}
