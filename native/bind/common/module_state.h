/* The state of the module: one struct per interpreter that imports it.
 *
 * It is zero when the module is made.  The GIL guards it.
 */
#pragma once

#include "bind/common/python.h"

struct st_ipc_thread_object;

struct st_bind_state {
  struct st_ipc_thread_object* running_threads; /* linked by next */
};

/* The state of the module that `type`, one of our heap types, belongs to. */
static inline struct st_bind_state* st_bind_state(PyTypeObject* type) {
  return PyType_GetModuleState(type);
}
