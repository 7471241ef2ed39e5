/* The track of the asyncio task that a thread is running.
 *
 * Slices of interleaved tasks cannot nest on one thread track, so each task has
 * a track of its own.  A task's steps run in its context: while the thread's
 * context is the same object in the same version, the task is the same, and the
 * cached track is used.
 *
 * The tracks of recent tasks are cached by the task's address; a weak reference
 * tells a new task at the same address from the old one.
 */
#pragma once

#include "bind/track_event/thread_state.h"

static inline bool context_changed(const struct thread_state* t,
                                   PyThreadState* python) {
  return python->context_ver != t->context_version ||
         python->context != t->context;
}

/* Returns the uuid of the track of the thread's task, or else of the thread. */
static inline uint64_t current_track_uuid(const struct thread_state* t) {
  return t->task_track ? t->task_track->core.uuid : t->track.uuid;
}

/* Finds the running task and stores its track; runs Python code.  Called after
 * the thread's context has changed.  A pending exception stays set. */
void thread_state_refresh_task(struct thread_state* t);
