/* Thread states: one struct per tracing thread, with its sequences and track.
 *
 * Life cycle: made with a thread's first event.  When the thread ends, its
 * pthread destructor closes the sequences, without the GIL and under `lock`;
 * the next thread that makes a state frees the rest
 * (thread_states_reap). In the child of a fork only the forking thread's state
 * is left, with its writers disabled.
 *
 * Threads: a thread owns its state and sequences, and changes them with the GIL
 * held.  So any thread that holds the GIL may access every state, unless the
 * owner is `busy`: it is writing, and may wait in a stalling policy without the
 * GIL.
 *
 * No Python code runs while a packet is open.  References that have to be
 * dropped meanwhile are kept in a list (discard_later) and dropped after the
 * event.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include "bind/common/bytes_builder.h"
#include "bind/common/python.h"
#include "bind/track_event/instances.h"
#include "bind/track_event/thread_sequence.h"
#include "bind/track_event/track.h"

enum { MAX_DISCARDED = 64, TASK_TRACKS = 32 };

/* An entry of a direct-mapped cache.  A new task at the same address has
 * another weak reference. */
struct task_track {
  PyObject* task; /* A weak reference, or NULL. */
  TrackObject* track;
};

struct thread_state {
  struct thread_sequence* sequences[MAX_INSTANCES];
  struct st_track track;
  uint8_t* descriptor;
  PyObject* name; /* The name in the thread's descriptor. */
  /* The track of the running asyncio task, or NULL. */
  TrackObject* task_track;
  struct task_track tasks[TASK_TRACKS];
  PyObject* context; /* The thread's last context; only compared. */
  uint64_t context_version;
  struct bytes_builder scratch; /* Used as a stack, because events may nest. */
  /* Entries of the event that is being written. */
  struct bytes_builder interned;
  PyObject* discarded[MAX_DISCARDED]; /* References to drop after the event. */
  unsigned discarded_count;
  struct thread_sequence* done; /* Sequences to free after the event. */
  /* The number of events whose arguments are being converted. */
  unsigned converting;
  PyObject* traced_code; /* A code object, only compared (slice.c). */
  uint32_t traced_mask;
  bool busy; /* Whether the owner is writing, or waits without the GIL. */

  /* The list of all states, guarded by the GIL. */
  struct thread_state *next, *prev;
  /* The mutex that the thread's destructor holds, or a visitor with the GIL. */
  pthread_mutex_t lock;
  /* Stored last by the ending thread. Store and load are sequentially
   * consistent: who reads true sees all that the thread has written. */
  _Atomic bool dead;
};

extern _Thread_local struct thread_state* st_thread;

/* Returns the calling thread's state, and makes it on first use, which runs
 * Python code to get the thread's name.  NULL when out of memory, or when
 * called while the state is being made. */
struct thread_state* thread_state_get(void);

/* Returns the thread's sequence for a slot, and makes it on first use.  NULL
 * when the slot does not record, or when out of memory. */
struct thread_sequence* thread_state_sequence(struct thread_state* t, int slot);

/* Describes the thread again if its name has changed.  Called before an event
 * that may announce the state of a sequence.  Runs Python code. */
void thread_state_refresh_name(struct thread_state* t, uint32_t mask);

/* Sets the hook that describes threads: hook(last name) returns (uuid,
 * descriptor, name), or None if the name is unchanged. */
void thread_state_set_hook(PyObject* describe_thread);

/* Drops the references kept by discard_later(). May run Python code. */
void thread_state_release_discarded(struct thread_state* t);

/* Drops a reference after the current event.  The reference may be NULL. */
static inline void discard_later(struct thread_state* t, PyObject* object) {
  if (!object)
    return;
  if (t->discarded_count == MAX_DISCARDED) {
    /* Freeing a str or a code object runs no Python code. */
    Py_DECREF(object);
    return;
  }
  t->discarded[t->discarded_count++] = object;
}

void thread_states_drop_instance(int slot);
void thread_states_clear_state(int slot);
void thread_states_flush(int slot);
void thread_states_count(int slot, uint64_t* written, uint64_t* lost);
/* Frees the states of threads that have ended. */
void thread_states_reap(void);

/* Resets all thread states in the child of a fork: only the calling thread
 * exists, and it must not write to the parent's memory. */
void thread_states_after_fork(void);
void thread_states_install_fork_handler(void);
