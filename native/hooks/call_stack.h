/* Call stack: the open calls of one thread.
 *
 * Problem: an END closes the innermost slice of its track, so an END may be
 * written only if its BEGIN was.  But tracing starts in the middle of calls,
 * sessions start and stop during calls, BEGINs are lost, and a program may
 * switch stacks (greenlets) or replace our hook for a while.
 *
 *   frames   [ main | load | parse ]        depth 3
 *              key    address of code or callable; only compared
 *              mask   the slots to which its BEGIN was written
 *
 * leave(key) closes the innermost frame with that key, and the frames above it,
 * whose returns were missed.  A key without a frame belongs to a call that
 * began before tracing: leave() does nothing.  Calls deeper than max_depth are
 * only counted.
 *
 * Once the program has imported greenlet, each event compares the open calls with
 * the thread's present stack, as stack_switches.h does for auto detail.  There are
 * no stack samples here.  So when a thread has left a stack, the slices of its
 * calls end at the thread's last event, and those of the calls on the present
 * stack begin again at the present event.
 *
 * With a minimal duration a BEGIN is written only after its call has lasted
 * that long.  The BEGIN then gets the time at which the call began.  An outer
 * call is never shorter than an inner one, so the frames with a written BEGIN
 * are always the first `begun` ones, and slices nest correctly.
 *
 * Only the owning thread accesses its frames.  If the tracer was started again
 * (a new generation), the thread drops its old frames at its next event.  The
 * stack of an ended thread is freed when the next stack is made.
 */
#pragma once

#include "core/suspended_calls.h"
#include "core/thread_list.h"
#include "hooks/tracer.h"

struct st_frame {
  const void* key;
  /* The code object or name of the call: a strong reference while the BEGIN is
   * not written yet; else NULL. */
  PyObject* subject;
  /* The arguments of a BEGIN that is not written yet: a dict, or NULL. */
  PyObject* arguments;
  uint64_t timestamp;
  uint64_t cpu_us; /* The CPU time at the begin of the call, or 0. */
  /* The address of the interpreter's frame; 0 for a C function.  Set only after
   * the program has imported greenlet. */
  uint64_t address;
  /* The slots that got the BEGIN of the call.  Before the BEGIN is written: the
   * slots that must not get it. */
  uint32_t mask;
  uint32_t since;
};

struct st_call_stack {
  struct st_thread_record thread;
  struct st_frame* frames;
  uint32_t depth, capacity, begun;
  uint32_t generation;
  /* The number of open calls that are deeper than max_depth. */
  uint64_t beyond;
  /* Whether the program has set its own profiler on the thread. */
  bool replaced;
  bool placed; /* Whether the frames have addresses. */
  /* The time of the last event, and the calls of other stacks: known after the
   * program has imported greenlet. */
  uint64_t last_event;
  struct st_suspended_calls suspended;
};

extern _Thread_local struct st_call_stack* st_thread_stack;

/* Returns the call stack of the calling thread.  Makes it on first use, and
 * empties it for a new generation.  Returns NULL when out of memory. */
struct st_call_stack* st_call_stack_prepare(void);

/* Enter and leave a call in all cases that the inline functions below do not
 * handle.  `subject` is the code object, or the name of the C function.
 * `arguments` are those of the slice, a dict or NULL. */
void st_call_stack_enter_slowly(struct st_call_stack* s, const void* key,
                                PyObject* subject, PyObject* arguments);
/* Leaves a call.  `raised` is the type of the exception that has left the call,
 * or NULL. */
void st_call_stack_leave_slowly(struct st_call_stack* s, const void* key,
                                PyObject* raised, PyObject* arguments);

/* Writes the waiting BEGINs of those calls of the calling thread that have
 * reached the minimal duration. */
void st_call_stack_flush(void);
struct st_call_stack* st_call_stack_find(uint64_t thread_id);
/* Registers the fork handler, which keeps only the calling thread's stack in a
 * child. */
void st_call_stacks_watch_forks(void);

static inline struct st_call_stack* st_call_stack_get(void) {
  struct st_call_stack* s = st_thread_stack;
  if (ST_LIKELY(s && s->generation == st_hooks.generation))
    return s;
  return st_call_stack_prepare();
}

static inline bool st_call_stack_is_innermost(const struct st_call_stack* s,
                                              const void* key) {
  return s && s->generation == st_hooks.generation && s->depth &&
         s->frames[s->depth - 1].key == key && !s->beyond;
}

static inline void st_call_stack_enter_code(PyObject* code) {
  struct st_call_stack* s = st_call_stack_get();
  if (ST_UNLIKELY(!s))
    return;
  if (ST_UNLIKELY(s->depth == s->capacity || st_hooks.slow_calls)) {
    st_call_stack_enter_slowly(s, code, code, NULL);
    return;
  }
  const struct st_track_event_api* api = st_hooks.api;
  struct st_frame* f = &s->frames[s->depth++];
  f->key = code;
  f->subject = NULL;
  f->mask = api->begin_code(st_hooks.category, code, 0, 0);
  /* begin_code() may run Python code that starts a session. */
  f->since = *api->start_counter;
}

/* Enters a call of a C function; ignores other callables. */
void st_call_stack_enter_c(PyObject* callable);

static inline void st_call_stack_leave(const void* key) {
  struct st_call_stack* s = st_thread_stack;
  if (ST_UNLIKELY(!st_call_stack_is_innermost(s, key) || st_hooks.slow_calls)) {
    if (s)
      st_call_stack_leave_slowly(s, key, NULL, NULL);
    return;
  }
  const struct st_frame* f = &s->frames[--s->depth];
  if (ST_LIKELY(f->mask))
    st_hooks.api->end(f->mask, f->since, 0);
}
