/* Arguments of events that could not be converted, or were wrong: counted.
 *
 * An event never raises into the traced program.  Used with the GIL.
 */
#pragma once

#include "bind/common/python.h"

extern uint64_t st_argument_errors;

/* Counts and clears the exception that is set.  A KeyboardInterrupt belongs to
 * the program: it is raised again as soon as the event is written. */
void swallow_error(void);
