/* Calls made by Stretto itself, which function tracing leaves out.
 *
 * Function tracing recognises our own modules by their code.  It cannot
 * recognise what these call (sockets, signals, selectors): the program calls
 * the same functions.  So each thread counts how deep it is inside a call that
 * Stretto made; while the count is above 0, begin_code() of
 * track_event_api.h writes no slice.
 */
#pragma once

#include "bind/common/python.h"

/* Depth of the calling thread in calls made by Stretto. */
extern _Thread_local uint32_t st_own_work;

/* function(*args), counted as a call made by Stretto. */
static inline PyObject* st_call_own(PyObject* function, PyObject* const* args,
                                    size_t count) {
  st_own_work++;
  PyObject* result = PyObject_Vectorcall(function, args, count, NULL);
  st_own_work--;
  return result;
}
