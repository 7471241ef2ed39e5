/* Arguments of events that could not be converted, or were wrong: counted.
 *
 * An event never raises into the traced program.  Used with the GIL.
 */
#ifndef STRETTO_BIND_TRACK_EVENT_ARGUMENT_ERRORS_H_
#define STRETTO_BIND_TRACK_EVENT_ARGUMENT_ERRORS_H_

#include "bind/common/python.h"

extern uint64_t st_argument_errors;

/* Counts and clears the exception that is set.  A KeyboardInterrupt belongs to
 * the program: it is raised again as soon as the event is written. */
void swallow_error(void);

/* Adds argument_errors() to the module.  -1: an exception is set. */
int st_bind_add_argument_errors(PyObject* module);

#endif /* STRETTO_BIND_TRACK_EVENT_ARGUMENT_ERRORS_H_ */
