/* What the looks saw, on its way to the shown calls.
 *
 *   look.c, without the GIL --- ring of words ---> whoever holds the GIL next
 *
 *   a sighting   kind and number of frames | thread | time | time of the look
 *                before | frames, the innermost first
 *
 * Each event takes what is in the ring before it does its own work, so that a
 * thread's frames are those at the time of the look:
 *
 *   no event since the look   the sighting and the frames by events belong
 *                             together: all of these must be in it, in order
 *   events since              the thread's real stack is walked, and the
 *                             sighting only says which of its frames were there
 *
 * A frame of a function that is switched off is put between its neighbours when
 * it is first seen, and is confirmed when it is seen again.  Its function is
 * armed before each look: were the second sight another call, the interpreter
 * had reported it.
 *
 * A full ring loses sightings: the calls seen there may be missing, no others.
 */
#pragma once

#include "hooks/shown_calls.h"
#include "probes/stack_reader.h"

struct st_sighting {
  struct st_looked_at* thread;
  uint64_t thread_id, native_id;
  uint64_t time, before;
  bool gone; /* the thread has ended */
  int depth;
  const struct st_stack_frame* frames;
};

/* The look's.  False: the ring is full. */
bool st_sightings_put(const struct st_sighting* sighting);
bool st_sightings_waiting(void);

/* The rest needs the GIL. */

void st_sightings_start(void);
/* Merges all that wait.  entering: the calling thread's innermost frame is just
 * being entered. */
void st_sightings_take(bool entering);

extern _Atomic uint64_t st_sightings_lost, st_sightings_torn;
