/* The slices that begin() opened and end() has not closed yet, by track.
 *
 * An END is written only where its BEGIN was: without it, an END would close
 * the slice around it.  One table for the process; used with the GIL.
 */
#pragma once

#include "bind/common/python.h"

/* begin() was called on the track for the slots in `mask`; its BEGIN was written
 * to those in `written`. */
void open_begins_push(uint64_t uuid, uint32_t mask, uint32_t written);

/* Removes the innermost begin() of the track.  Returns the slots of `mask` that
 * have its BEGIN. */
uint32_t open_begins_pop(uint64_t uuid, uint32_t mask);

void open_begins_forget_ended_sessions(void);
