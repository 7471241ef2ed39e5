/* Stack switches: a thread goes on with the calls of another stack, that of
 * another greenlet, without an event.
 *
 *   stack of a greenlet       main > first > switch()        suspended
 *   stack of another one      work > step                    runs
 *
 * The stacks have no frames in common.  So if none of the open calls is on the
 * thread's present stack, the thread has left their stack: their slices end at
 * the last time at which they were certainly open, and the calls are kept
 * (suspended_calls.h).  The kept calls that are on the present stack begin again,
 * at the event or sample that has found them.  Such a part is not counted as a
 * call.
 *
 * Each event checks this once the program has imported greenlet: the callers of
 * its frame are walked up to the innermost open call, mostly the first one.
 */
#pragma once

#include "hooks/shown_calls.h"
#include "probes/stack_reader.h"

/* Handles the switches of the calling thread since its last event.  `entering`:
 * the call of its innermost frame is about to begin. */
void st_switches_follow(struct st_shown_calls* s, uint64_t now, bool entering);
/* Does the first part for a stack that a sample has found: leaves the open calls
 * if none of them is on it.  They were open until `until`, and not after
 * `limit`. */
void st_switches_leave_for(struct st_shown_calls* s,
                           const struct st_stack_frame* stack, int depth,
                           uint64_t until, uint64_t limit);
/* Returns the suspended call of a frame, or NULL. */
const struct st_suspended_call* st_switches_find(
    const struct st_shown_calls* s, const struct st_stack_frame* frame);
/* A new frame is a part of a suspended call: takes over what is known of it. */
void st_switches_continue(struct st_shown_calls* s, struct st_shown_frame* f,
                          const struct st_suspended_call* call);
