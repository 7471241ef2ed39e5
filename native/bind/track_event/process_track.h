/* The track of this process: the parent of all other tracks.
 *
 * The client sets it at start, and again in the child of a fork.  This
 * increases the generation, so that tracks update their uuids when they are
 * used next (track.h).  Written with the GIL.
 */
#pragma once

#include "bind/common/python.h"
#include "core/track_event.h"

extern struct st_track st_process_track;
extern uint32_t st_process_generation;

enum { ST_THREAD_DESCRIPTOR = 64 };

/* Encodes the descriptor of a thread of this process, without a name, in
 * ST_THREAD_DESCRIPTOR bytes.  Returns its size. */
size_t describe_thread(uint64_t native_id, uint8_t* descriptor, uint64_t* uuid);
