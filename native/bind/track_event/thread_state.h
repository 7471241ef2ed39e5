/* Thread states: which thread is tracing, and where its sequences are.
 *
 * Life cycle: made with a thread's first event.  When the thread ends, its
 * pthread destructor closes the sequences, without the GIL and under `lock`; the
 * next thread that passes through here frees the rest (reap).  In the child of
 * a fork only the forking thread's state is left, with its writers disabled.
 *
 * Threads: a thread owns its state and the sequences in it and changes them with
 * the GIL, so a holder of the GIL may look at any thread's state, except while
 * its owner is `busy`: writing, and maybe waiting in a stalling policy without
 * the GIL.
 *
 * No Python code runs while a packet is open.  Objects whose last reference may
 * go then are put aside (discard_later) and released after the event.
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

/* Direct-mapped; a task of the same address has another weak reference. */
struct task_track {
  PyObject* task; /* weak reference, or NULL */
  TrackObject* track;
};

struct thread_state {
  struct thread_sequence* sequences[MAX_INSTANCES];
  struct st_track track;
  uint8_t* descriptor;
  PyObject* name;          /* as described */
  TrackObject* task_track; /* of the asyncio task that runs now, or NULL */
  struct task_track tasks[TASK_TRACKS];
  PyObject* context; /* borrowed, compared only */
  uint64_t context_version;
  struct bytes_builder scratch;       /* used as a stack: events may nest */
  struct bytes_builder interned;      /* entries of the event being written */
  PyObject* discarded[MAX_DISCARDED]; /* released after the event */
  unsigned discarded_count;
  struct thread_sequence* done; /* freed after the event */
  unsigned converting;          /* events whose arguments are being converted */
  PyObject* traced_code;        /* borrowed, compared only: see slice.h */
  uint32_t traced_mask;
  bool busy; /* writing; it may wait in a stalling policy without the GIL */

  struct thread_state *next, *prev; /* list of all, under the GIL */
  pthread_mutex_t lock;             /* the destructor against the GIL holder */
  _Atomic bool dead;
};

extern _Thread_local struct thread_state* st_thread;

/* The calling thread's state, made on first use, which runs Python: it asks
 * for the thread's name.  NULL: no memory, or called while it is being made. */
struct thread_state* thread_state_get(void);

/* The thread's sequence for a slot, made on first use.  NULL: the slot does not
 * record, or there is no memory. */
struct thread_sequence* thread_state_sequence(struct thread_state* t, int slot);

/* Describes the thread again if its name has changed.  Called before an event
 * that may announce the state of a sequence; runs Python. */
void thread_state_refresh_name(struct thread_state* t, uint32_t mask);

/* hook(name) -> (uuid, descriptor, name), or None if the name is the same. */
void thread_state_set_hook(PyObject* describe_thread);

/* Releases what was put aside.  May run Python. */
void thread_state_release_discarded(struct thread_state* t);

/* Drops a reference after the event.  NULL is allowed. */
static inline void discard_later(struct thread_state* t, PyObject* object) {
  if (!object)
    return;
  if (t->discarded_count == MAX_DISCARDED) {
    Py_DECREF(object); /* a str or a code object: its end runs no Python */
    return;
  }
  t->discarded[t->discarded_count++] = object;
}

/* ---- all threads ---- */

void thread_states_drop_instance(int slot);
void thread_states_clear_state(int slot);
void thread_states_flush(int slot);
void thread_states_count(int slot, uint64_t* written, uint64_t* lost);
/* Frees the states of threads that have ended. */
void thread_states_reap(void);

/* In the child of a fork: only the calling thread exists, and it must not write
 * to the parent's memory. */
void thread_states_after_fork(void);
void thread_states_install_fork_handler(void);
