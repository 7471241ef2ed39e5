/* The counter of event arguments that were wrong or could not be converted.
 *
 * An event never raises into the traced program.  Used with the GIL.
 */
#pragma once

#include "bind/common/python.h"

extern uint64_t st_argument_errors;

/* Counts and clears the current exception.  A KeyboardInterrupt is meant for
 * the program, so it is not lost: it is raised again after the event is
 * written. */
void swallow_error(void);
