/* The track of the asyncio task that a thread is running.
 *
 * Slices of interleaved tasks cannot nest on one thread track, so each task has
 * a track of its own.
 *
 * A thread's state stores the track of the task that ran last.  Each task runs
 * in a context of its own.  So the stored track is still right if the thread's
 * context and the context's version have not changed.
 *
 * The tracks of recent tasks are cached by the task's address.  A new task may
 * get the address of a task that was destroyed: a weak reference to the task
 * tells them apart.
 */
#pragma once

#include "bind/track_event/thread_state.h"

/* Returns whether the thread, which is the calling one, may run another task
 * than at its last event. */
static inline bool context_changed(const struct thread_state* t) {
  const PyThreadState* python = python_state(t);
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
