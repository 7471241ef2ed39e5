/* Sightings: a sighting is the stack that one look (look.h) found on one
 * thread.  A ring buffer passes sightings from the look thread to the list of
 * each thread's open calls (shown_calls.h).
 *
 *   look.c, without the GIL --- ring of words ---> the next thread that holds
 *                                                  the GIL
 *
 *   a sighting   kind and number of frames | thread | time | time of the look
 *                before | frames, the innermost first
 *
 * Each event first merges all sightings in the ring, so that a thread's frames
 * are those at the time of the look:
 *
 *   no event since the look   the sighting must contain all frames that events
 *                             reported, in their order
 *   events since the look     the thread's present stack is walked; the
 *                             sighting shows which of its frames a look found
 *
 * The interpreter does not report calls of functions that are switched off.  If
 * a look finds such a call for the first time, it is inserted between its
 * neighbours.  If the next look finds a call at the same address, the call is
 * confirmed.  It is the same call, because the function was armed in between:
 * the interpreter would have reported a new call.
 *
 * A full ring drops sightings.  Calls that only those looks found may then be
 * missing; all other calls are complete.
 */
#pragma once

#include "hooks/shown_calls.h"
#include "probes/stack_reader.h"

struct st_sighting {
  struct st_looked_at* thread;
  uint64_t thread_id, native_id;
  uint64_t time, before;
  bool gone; /* Whether the thread of this sighting has ended. */
  int depth;
  const struct st_stack_frame* frames;
};

/* Puts a sighting into the ring.  Called by the look thread.  Returns false if
 * the ring is full. */
bool st_sightings_put(const struct st_sighting* sighting);
bool st_sightings_waiting(void);

/* The functions from here on need the GIL. */

void st_sightings_start(void);
/* Merges the stacks in the ring into the lists of open calls (shown_calls.h).
 * `entering`: the call of the calling thread's innermost frame is about to
 * begin. */
void st_sightings_take(bool entering);

extern _Atomic uint64_t st_sightings_lost, st_sightings_torn;
