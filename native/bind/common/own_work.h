/* Own work: calls that Stretto makes are none of the program's.
 *
 * Function tracing leaves our own modules out by their code; what these call
 * (sockets, signals, selectors) it can't tell from the program's own calls.  So
 * a thread counts how deep it is in our work, and as long as it is, the slices
 * of calls (track_event_api.h) are left out.
 */
#ifndef STRETTO_BIND_COMMON_OWN_WORK_H_
#define STRETTO_BIND_COMMON_OWN_WORK_H_

#include <Python.h>
#include <stdint.h>

extern _Thread_local uint32_t st_own_work;

/* function(*args), as own work. */
static inline PyObject* st_call_own(PyObject* function, PyObject* const* args,
                                    size_t count) {
  st_own_work++;
  PyObject* result = PyObject_Vectorcall(function, args, count, NULL);
  st_own_work--;
  return result;
}

#endif /* STRETTO_BIND_COMMON_OWN_WORK_H_ */
