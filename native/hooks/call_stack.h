/* The calls that are open on one thread.
 *
 * Problem: an END closes whatever slice is innermost on its track, so an END
 * may be written only where its BEGIN was.  Tracing starts in the middle of
 * calls, sessions come and go while they last, BEGINs are lost, a program may
 * switch stacks under us (greenlets) or take our hook away for a while.
 *
 *   frames   [ main | load | parse ]        depth 3
 *              key    what it was entered by: compared, never followed
 *              mask   the slots whose BEGIN was written, and when
 *
 * leave(key) closes the innermost frame of that key, and those above it, which
 * nobody will close any more.  A key that isn't there was entered before we
 * came, and nothing happens.  Calls deeper than max_depth are only counted.
 *
 * With a minimal duration a BEGIN waits until its call has lasted that long;
 * then it is written with its own time.  An outer call is never shorter than
 * an inner one, so the frames whose BEGIN was written are always the first
 * ones (`begun` of them), and slices nest as ever.
 *
 * Only the owning thread touches its frames.  A start of the tracer (a new
 * generation) makes it forget them at its next event; what a dead thread
 * leaves is freed by the next thread that comes by.
 */
#pragma once

#include "hooks/tracer.h"

struct st_frame {
  const void* key;
  PyObject* subject; /* strong, while its BEGIN waits; else NULL */
  uint64_t timestamp;
  uint32_t mask; /* while its BEGIN waits: the slots that won't get it */
  uint32_t since;
};

struct st_call_stack {
  struct st_frame* frames;
  uint32_t depth, capacity, begun;
  uint32_t generation;
  uint64_t beyond; /* open calls deeper than max_depth */
  uint64_t thread_id;
  bool replaced; /* the program set another profiler here */
  _Atomic bool dead;
  struct st_call_stack* next;
};

extern _Thread_local struct st_call_stack* st_thread_stack;

/* Makes the calling thread's stack, or empties it for a new generation.
 * NULL: no memory. */
struct st_call_stack* st_call_stack_prepare(void);

/* The general forms of what is inline below.  subject: the code object, or
 * the name of the C function. */
void st_call_stack_enter_slowly(struct st_call_stack* s, const void* key,
                                PyObject* subject);
void st_call_stack_leave_slowly(struct st_call_stack* s, const void* key);

/* Writes the BEGINs that waited long enough, on the calling thread. */
void st_call_stack_flush(void);
struct st_call_stack* st_call_stack_find(uint64_t thread_id);
/* In the child of a fork only the calling thread is left. */
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
  if (ST_UNLIKELY(s->depth == s->capacity || st_hooks.min_duration_ns)) {
    st_call_stack_enter_slowly(s, code, code);
    return;
  }
  const struct st_track_event_api* api = st_hooks.api;
  struct st_frame* f = &s->frames[s->depth++];
  f->key = code;
  f->subject = NULL;
  f->since = *api->start_counter;
  f->mask = api->begin_code(st_hooks.category, code, 0, 0);
}

/* Nothing for other callables. */
void st_call_stack_enter_c(PyObject* callable);

static inline void st_call_stack_leave(const void* key) {
  struct st_call_stack* s = st_thread_stack;
  if (ST_UNLIKELY(!st_call_stack_is_innermost(s, key) ||
                  st_hooks.min_duration_ns)) {
    if (s)
      st_call_stack_leave_slowly(s, key);
    return;
  }
  const struct st_frame* f = &s->frames[--s->depth];
  if (ST_LIKELY(f->mask))
    st_hooks.api->end(f->mask, f->since, 0);
}
