/* Thread states for native threads that call Python. */
#pragma once

#include "bind/common/python.h"

/* Returns a new thread state; NULL if there is no memory, or if the interpreter
 * has no thread any more.  CPython 3.12 ends the process if such an interpreter
 * gets one: a child that was forked in a thread, once that thread has ended. */
static inline PyThreadState* st_new_thread_state(
    PyInterpreterState* interpreter) {
  return PyInterpreterState_ThreadHead(interpreter)
             ? PyThreadState_New(interpreter)
             : NULL;
}
