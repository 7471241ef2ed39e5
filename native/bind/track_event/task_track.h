/* The track of the asyncio task that runs now on a thread.
 *
 * Slices of interleaved tasks cannot nest on one thread track, so each task has
 * a track of its own.  A task's steps run in its context: while the context
 * variables of the thread are the same object in the same version, the task is
 * the same, and nothing is asked.
 *
 * The tracks of the last tasks are cached by the task's address; a weak
 * reference tells a new task at the same address from the old one.
 */
#pragma once

#include "bind/track_event/thread_state.h"

static inline bool context_changed(const struct thread_state* t,
                                   PyThreadState* python) {
  return python->context_ver != t->context_version ||
         python->context != t->context;
}

/* Finds the task that runs now; runs Python.  Call it only after the context
 * has changed.  A pending exception stays. */
void thread_state_refresh_task(struct thread_state* t);
