#include "hooks/call_stack.h"

#include "hooks/c_functions.h"
#include "hooks/cpu_time.h"

enum { FIRST_CAPACITY = 64 };

_Thread_local struct st_call_stack* st_thread_stack;

static void forget_frames(struct st_call_stack* s) {
  while (s->depth) {
    struct st_frame f = s->frames[--s->depth];
    if (f.subject)
      Py_XDECREF(f.arguments);
    Py_XDECREF(f.subject);
  }
  s->begun = 0;
  s->beyond = 0;
}

static void forget_own(void) {
  st_thread_stack = NULL;
}

/* Frees the call stack of a thread.  May run Python code. */
static void free_stack(struct st_thread_record* record, bool ended) {
  (void)ended;
  struct st_call_stack* s = (struct st_call_stack*)record;
  forget_frames(s);
  PyMem_RawFree(s->frames);
  PyMem_RawFree(s);
}

static struct st_thread_list stacks = {.on_exit = forget_own,
                                       .free_record = free_stack};

void st_call_stacks_watch_forks(void) {
  st_thread_list_init(&stacks);
}

static struct st_call_stack* make_stack(void) {
  st_thread_list_reap(&stacks);
  struct st_call_stack* s = PyMem_RawCalloc(1, sizeof *s);
  if (!s)
    return NULL;
  st_thread_list_add(&stacks, &s->thread,
                     PyThreadState_GetID(PyThreadState_Get()));
  st_thread_list_claim(&s->thread);
  st_thread_stack = s;
  return s;
}

struct st_call_stack* st_call_stack_prepare(void) {
  struct st_call_stack* s = st_thread_stack;
  if (!s)
    s = make_stack();
  if (!s)
    return NULL;
  forget_frames(s);
  s->replaced = false;
  if (s->capacity > st_hooks.max_depth)
    s->capacity = st_hooks.max_depth;
  s->generation = st_hooks.generation;
  return s;
}

struct st_call_stack* st_call_stack_find(uint64_t thread_id) {
  struct st_call_stack* s =
      (struct st_call_stack*)st_thread_list_find(&stacks, thread_id);
  return s && s->generation == st_hooks.generation ? s : NULL;
}

static bool make_room(struct st_call_stack* s) {
  if (s->depth < s->capacity)
    return true;
  uint32_t capacity = s->capacity ? s->capacity * 2 : FIRST_CAPACITY;
  if (capacity > st_hooks.max_depth)
    capacity = st_hooks.max_depth;
  if (capacity <= s->depth)
    return false;
  void* grown = PyMem_RawRealloc(s->frames, capacity * sizeof *s->frames);
  if (!grown)
    return false;
  s->frames = grown;
  s->capacity = capacity;
  return true;
}

static struct st_past_event event_with(PyObject* arguments, uint64_t time,
                                       uint64_t cpu_us) {
  return (struct st_past_event){.timestamp = time ? time : st_hooks.api->now(),
                                .arguments = arguments,
                                .thread_time_us = cpu_us};
}

static uint32_t begin_with(struct st_frame* f, PyObject* subject,
                           PyObject* arguments) {
  uint32_t except = f->timestamp ? f->mask : st_hooks.api->take_traced(subject);
  struct st_past_event e = event_with(arguments, f->timestamp, f->cpu_us);
  if (st_hooks.cpu && !f->cpu_us)
    f->cpu_us = e.thread_time_us = st_own_cpu_us();
  return st_hooks.api->begin_past(st_hooks.category, subject, except, &e);
}

static void begin(struct st_frame* f, PyObject* subject, PyObject* arguments) {
  const struct st_track_event_api* api = st_hooks.api;
  if ((arguments || st_hooks.cpu) && !api->is_untraced())
    f->mask = begin_with(f, subject, arguments);
  else if (!PyCode_Check(subject))
    f->mask = api->begin_name(st_hooks.category, subject, f->timestamp);
  else
    f->mask =
        api->begin_code(st_hooks.category, subject, f->timestamp, f->mask);
  f->since =
      /* The start counter is read after begin_code(), which may run Python code
       * that starts a session. */
      *api->start_counter;
}

static void begin_waiting(struct st_frame* f) {
  PyObject *subject = f->subject, *arguments = f->arguments;
  f->subject = NULL;
  begin(f, subject, arguments);
  Py_XDECREF(arguments);
  Py_DECREF(subject);
}

/* Writes the waiting BEGINs of those calls that have reached the minimal
 * duration. */
static void begin_all_due(struct st_call_stack* s, uint64_t now) {
  while (s->begun < s->depth &&
         now - s->frames[s->begun].timestamp >= st_hooks.min_duration_ns)
    begin_waiting(&s->frames[s->begun++]);
}

void st_call_stack_enter_slowly(struct st_call_stack* s, const void* key,
                                PyObject* subject, PyObject* arguments) {
  uint64_t now = st_hooks.min_duration_ns ? st_hooks.api->now() : 0;
  if (now)
    begin_all_due(s, now);
  if (s->beyond || s->depth >= st_hooks.max_depth || !make_room(s)) {
    s->beyond++;
    st_hooks.counts.too_deep++;
    return;
  }
  struct st_frame* f = &s->frames[s->depth++];
  *f = (struct st_frame){.key = key, .timestamp = now};
  if (now) {
    f->cpu_us = st_hooks.cpu ? st_own_cpu_us() : 0;
    f->subject = Py_NewRef(subject);
    f->arguments = Py_XNewRef(arguments);
    f->mask = st_hooks.api->take_traced(subject);
  } else {
    begin(f, subject, arguments);
  }
}

void st_call_stack_enter_c(PyObject* callable) {
  if (!st_is_c_function(callable))
    return;
  struct st_call_stack* s = st_call_stack_get();
  PyObject* name = s ? Py_XNewRef(st_c_function_name(callable)) : NULL;
  if (name)
    st_call_stack_enter_slowly(s, callable, name, NULL);
  Py_XDECREF(name);
}

static void drop_waiting(struct st_frame* f) {
  st_hooks.counts.too_short++;
  Py_CLEAR(f->arguments);
  Py_CLEAR(f->subject);
}

static void end_with(const struct st_frame* f, PyObject* arguments,
                     uint64_t time, uint64_t cpu_us) {
  struct st_past_event e = event_with(arguments, time, cpu_us);
  st_hooks.api->end_past(f->mask, f->since, &e);
}

static void close_innermost(struct st_call_stack* s, PyObject* raised,
                            PyObject* arguments) {
  uint64_t now = 0;
  if (st_hooks.min_duration_ns) {
    now = st_hooks.api->now();
    begin_all_due(s, now);
  }
  struct st_frame* f = &s->frames[--s->depth];
  if (f->subject) {
    drop_waiting(f);
    return;
  }
  if (s->begun > s->depth)
    s->begun = s->depth;
  uint64_t cpu_us = f->cpu_us ? st_own_cpu_us() : 0;
  /* The trace processor ignores a thread time that has not changed. */
  if (cpu_us && cpu_us == f->cpu_us)
    cpu_us++;
  if (f->mask && raised)
    st_hooks.api->end_raised(f->mask, f->since, now, raised, cpu_us);
  else if (f->mask && (arguments || cpu_us))
    end_with(f, arguments, now, cpu_us);
  else if (f->mask)
    st_hooks.api->end(f->mask, f->since, now);
}

/* Returns the depth of the innermost frame with this key.  Returns 0 if no
 * frame has the key. */
static uint32_t depth_of(const struct st_call_stack* s, const void* key) {
  uint32_t depth = s->depth;
  while (depth && s->frames[depth - 1].key != key)
    depth--;
  return depth;
}

void st_call_stack_leave_slowly(struct st_call_stack* s, const void* key,
                                PyObject* raised, PyObject* arguments) {
  if (s->generation != st_hooks.generation)
    return;
  if (s->beyond) {
    s->beyond--;
    return;
  }
  uint32_t depth = depth_of(s, key);
  if (!depth)
    return;
  st_hooks.counts.unfinished += s->depth - depth;
  while (s->depth > depth)
    close_innermost(s, NULL, NULL);
  close_innermost(s, raised, arguments);
}

void st_call_stack_flush(void) {
  struct st_call_stack* s = st_thread_stack;
  if (s && s->generation == st_hooks.generation && st_hooks.min_duration_ns)
    begin_all_due(s, st_hooks.api->now());
}
