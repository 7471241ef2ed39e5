/* Untraced calls: calls by Stretto itself, which function tracing leaves out.
 *
 * Function tracing skips functions of our own modules, which it recognises by
 * their code objects.  Our modules call the standard library (sockets, signals,
 * selectors), and the program calls the same functions, so the code object
 * alone does not show which of the two called.  Each thread therefore counts
 * the untraced calls that it has entered and not left.  While the count is
 * above 0, begin_code() of track_event_api.h writes no slice.
 */
#pragma once

#include "bind/common/python.h"

/* The number of untraced calls that the calling thread has entered and not
 * left. */
extern _Thread_local uint32_t st_untraced_depth;

/* Calls function(*args) as an untraced call, so that function tracing leaves it
 * out. */
static inline PyObject* st_call_untraced(PyObject* function,
                                         PyObject* const* args, size_t count) {
  st_untraced_depth++;
  PyObject* result = PyObject_Vectorcall(function, args, count, NULL);
  st_untraced_depth--;
  return result;
}
