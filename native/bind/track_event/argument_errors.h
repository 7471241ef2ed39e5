/* The counter of event arguments that were wrong or could not be converted.
 *
 * An event never raises into the traced program.
 */
#pragma once

#include "bind/common/python.h"

extern _Atomic uint64_t st_argument_errors;

/* Counts the current exception as an argument error, and clears it.  A
 * KeyboardInterrupt is meant for the program: it is raised again after the
 * event is written. */
void swallow_error(void);
