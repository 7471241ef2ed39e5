/* The track of this process: the parent of all other tracks.
 *
 * The client sets it at start.  In the child of a fork, a hook sets it again
 * when it is first used.  Each change increases the generation, so that tracks
 * update their uuids when they are used next (track.h).  The GIL guards all
 * changes.
 */
#pragma once

#include "bind/common/python.h"
#include "bind/track_event/thread_name.h"
#include "core/track_event.h"

extern struct st_track st_process_track;
extern uint32_t st_process_generation;

/* Sets the Python function that describes this process and calls
 * set_process(). */
void st_process_track_set_hook(PyObject* describe_process);
/* Marks the track as that of the parent.  Called in the child of a fork. */
void st_process_track_forget(void);
/* Returns the track of this process.  May run Python code in the child of a
 * fork.  Code that may run before the first event of a thread must call this
 * function, and not use st_process_track directly. */
const struct st_track* st_process_track_get(void);

enum { ST_THREAD_DESCRIPTOR = 64 + ST_THREAD_NAME };

/* Encodes the descriptor of a thread of this process in ST_THREAD_DESCRIPTOR
 * bytes, with the thread's name if it is known.  Returns its size. */
size_t describe_thread(uint64_t native_id, uint8_t* descriptor, uint64_t* uuid);
