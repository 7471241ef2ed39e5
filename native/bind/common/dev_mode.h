/* Python's development mode.
 *
 * Wrong use of an event call or of a message is counted in a normal run, and
 * raises under `python -X dev`.
 */
#pragma once

#include "bind/common/python.h"

/* Whether Python runs with -X dev.  -1: an exception is set. */
int st_bind_dev_mode(void);
