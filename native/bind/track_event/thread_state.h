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
#include "bind/common/bytes_builder.h"
#include "bind/common/python.h"
#include "bind/track_event/thread_sequence.h"
#include "bind/track_event/track.h"
#include "core/hot.h"
#include "core/session_slots.h"
#include "core/thread_list.h"

enum {
  MAX_DISCARDED = 64,
  TASK_TRACKS = 32,
  ST_KERNEL_NAME = 16, /* The size of a thread's name in the kernel. */
};

/* A cached task track.  The cache is direct-mapped by the task's address.  A
 * new task at the same address has another weak reference. */
struct task_track {
  PyObject* task; /* A weak reference to the task, or NULL. */
  TrackObject* track;
};

struct thread_state {
  struct st_thread_record record;
  /* Whether the owner thread is writing, or waits without the GIL. */
  bool busy;
  struct thread_sequence* sequences[MAX_INSTANCES];
  struct st_track track;
  uint8_t* descriptor;
  PyObject* name; /* The thread's name in the thread's descriptor. */
  /* A weak reference to the Thread object if the attribute `_name` of that
   * object is the thread's name; else None.  NULL before the hook has run. */
  PyObject* thread;
  /* The thread's name in the kernel when it was described. */
  char kernel_name[ST_KERNEL_NAME];
  /* The track of the asyncio task that the thread is running, or NULL. */
  TrackObject* task_track;
  struct task_track tasks[TASK_TRACKS];
  /* The thread's PyThreadState as long as it exists, or NULL. */
  PyThreadState* python;
  /* The context that the thread had last.  It is only compared. */
  PyObject* context;
  uint64_t context_version;
  /* Memory for converted arguments, used as a stack because events may nest. */
  struct bytes_builder scratch;
  /* The encoded interned entries of the event that is being written. */
  struct bytes_builder interned;
  /* References that are dropped after the current event. */
  PyObject* discarded[MAX_DISCARDED];
  unsigned discarded_count;
  /* A list of sequences that are freed after the current event. */
  struct thread_sequence* done;
  /* The number of nested events whose arguments the thread is converting. */
  unsigned converting;
  /* The code object of a @traced function that is about to be called.  Only its
   * address is used (slice.c). */
  PyObject* traced_code;
  uint32_t traced_mask;
  /* A mutex.  It is held by the thread's destructor, or by another thread with
   * the GIL that visits the state. */
  pthread_mutex_t lock;
};

/* What a thread has of its own.  It is one variable: each one takes a line of the
 * processor's caches, and one of the linker's table of variables. */
extern ST_OWN _Thread_local struct st_own {
  struct thread_state* state; /* NULL before the first event. */
  /* The number of nested events that the thread is recording.  If it is above 0,
   * the conversion of an argument has called the Python code that is running. */
  unsigned events_underway;
  /* Whether thread_state_get() is making the state. */
  bool is_making_state;
} st_own;

/* Returns the PyThreadState of the calling thread, whose state is `t`.
 *
 * PyThreadState_Get() takes a tenth of an event's time where CPython is a shared
 * library: it calls the dynamic linker to find its thread-local variable.  A
 * thread of Python has one PyThreadState as long as it runs; a thread of C that
 * calls Python may have one per call.  So a capsule in the dict of the
 * PyThreadState tells when that ends.  From then on CPython is asked.
 *
 * A thread that switches to another PyThreadState while the kept one exists
 * (PyThreadState_Swap) is taken for one that runs the same task.
 *
 * Limit: a thread of C whose first event comes from a destructor that runs while
 * its state ends, and that attaches again, compares with the memory of the freed
 * state. */
static inline PyThreadState* python_state(const struct thread_state* t) {
  return LIKELY(t->python != NULL) ? t->python : PyThreadState_Get();
}

/* Returns the thread's sequence for the only slot in the mask.  Returns NULL if
 * the mask has several slots, or if the sequence cannot be written to now. */
static inline struct thread_sequence* only_sequence(
    const struct thread_state* t, uint32_t mask) {
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return NULL;
  int slot = __builtin_ctz(mask);
  struct thread_sequence* s = t->sequences[slot];
  bool current = s && s->generation == st_slot_running(slot);
  return LIKELY(current) ? s : NULL;
}

/* Returns the state of the calling thread.  Makes the state on first use, which
 * runs Python code to get the thread's name.  Returns NULL when out of memory,
 * or when called while the state is being made. */
struct thread_state* thread_state_get(void);

/* Returns the thread's sequence for a slot.  Makes the sequence on first use.
 * Returns NULL if the slot does not record, or when out of memory. */
struct thread_sequence* thread_state_sequence(struct thread_state* t, int slot);

/* Describes the thread again if its name has changed.  Called before an event
 * that may announce the incremental state of a sequence.  Runs Python code. */
void thread_state_refresh_name(struct thread_state* t, uint32_t mask);

/* Sets the hook that describes threads: hook(last name) returns (uuid,
 * descriptor, name, reference), or None if the name is unchanged.  While the
 * list `soon` has entries, the hook is called even if the name is unchanged. */
void thread_state_set_hook(PyObject* describe_thread, PyObject* soon);

/* Sets the function that is called with each new state, on its thread. */
void thread_states_set_watch(void (*function)(struct thread_state* t));

/* Drops the references that discard_later() has stored.  May run Python
 * code. */
void thread_state_release_discarded(struct thread_state* t);

/* Stores a reference that has to be dropped after the current event.  The
 * reference may be NULL. */
static inline void discard_later(struct thread_state* t, PyObject* object) {
  if (!object)
    return;
  if (t->discarded_count == MAX_DISCARDED) {
    /* The list is full, so the reference is dropped during the event: freeing a
     * str or a code object runs no Python code. */
    Py_DECREF(object);
    return;
  }
  t->discarded[t->discarded_count++] = object;
}

void thread_states_drop_instance(int slot);
void thread_states_clear_state(int slot);
void thread_states_flush(int slot);
/* Gives back the chunks of all threads that are not writing to the slot. */
void thread_states_give_back(int slot);
void thread_states_count(int slot, uint64_t* written, uint64_t* lost);
/* Calls `visit` for the state of each thread that has not ended. */
void thread_states_visit(void (*visit)(struct thread_state* t, void* context),
                         void* context);
/* Frees the states of threads that have ended. */
void thread_states_reap(void);

/* Resets all thread states in the child of a fork.  Only the calling thread
 * exists there, and it must not write to the parent's memory. */
void thread_states_after_fork(void);
void thread_states_install_fork_handler(void);
