/* The open slices of begin() and end(), by track.
 *
 * An END is written only where its BEGIN was: an END without its BEGIN would
 * close the enclosing slice.  One table for the process; used with the GIL.
 */
#pragma once

#include "bind/common/python.h"

/* Records a call of begin() on the track for the slots in `mask`.  The event
 * BEGIN was written only to the slots in `written`. */
void open_begins_push(uint64_t uuid, uint32_t mask, uint32_t written);

/* Removes the innermost open begin() call of the track.  Returns the slots in
 * `mask` to which the BEGIN of that call was written. */
uint32_t open_begins_pop(uint64_t uuid, uint32_t mask);

void open_begins_forget_ended_sessions(void);
