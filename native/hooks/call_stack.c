#include "hooks/call_stack.h"

#include "hooks/c_functions.h"
#include "hooks/cpu_time.h"
#include "hooks/python_layout.h"

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
  s->last_event = 0;
  st_suspended_clear(&s->suspended);
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

/* Closes the innermost call at the time `now`; 0: at the present time. */
static void close_innermost(struct st_call_stack* s, PyObject* raised,
                            PyObject* arguments, uint64_t now) {
  if (st_hooks.min_duration_ns) {
    now = now ? now : st_hooks.api->now();
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

/* Returns a new innermost frame for a part of an earlier call, which the caller
 * fills; NULL if there is no room. */
static struct st_frame* push(struct st_call_stack* s) {
  if (s->depth < st_hooks.max_depth && make_room(s))
    return &s->frames[s->depth++];
  st_hooks.counts.too_deep++;
  return NULL;
}

/* Begins the slices of all frames: each was added by push(). */
static void begin_pushed(struct st_call_stack* s) {
  for (uint32_t i = 0; i < s->depth; i++) {
    PyObject* code = (PyObject*)(uintptr_t)s->frames[i].key;
    if (st_hooks.min_duration_ns)
      s->frames[i].subject = Py_NewRef(code);
    else
      begin(&s->frames[i], code, NULL);
  }
}

static struct st_stack_frame own_frame(void) {
  return st_python_frame(PyThreadState_Get());
}

static bool is_call(const struct st_frame* f,
                    const struct st_stack_frame* frame) {
  return f->address == frame->address &&
         (uint64_t)(uintptr_t)f->key == frame->code;
}

static const struct st_suspended_call* find(const struct st_call_stack* s,
                                            const struct st_stack_frame* f) {
  const struct st_suspended_call* call =
      st_suspended_find(&s->suspended, f->address);
  return call && (uint64_t)(uintptr_t)call->of == f->code ? call : NULL;
}

/* Returns the innermost open call of a Python function, or NULL. */
static const struct st_frame* innermost(const struct st_call_stack* s) {
  uint32_t depth = s->depth;
  while (depth && !s->frames[depth - 1].address)
    depth--;
  return depth ? &s->frames[depth - 1] : NULL;
}

/* Finds the addresses of the frames of calls that began before the program
 * imported greenlet.  Returns whether it has found any. */
static bool place_frames(struct st_call_stack* s, struct st_stack_frame f) {
  uint32_t below = s->depth, found = 0;
  for (uint32_t i = 0; i < s->depth; i++)
    s->frames[i].address = 0;
  for (int i = 0; below && f.address && i < ST_STACK_MAX_DEPTH; i++) {
    uint32_t depth = below;
    while (depth && (uint64_t)(uintptr_t)s->frames[depth - 1].key != f.code)
      depth--;
    if (depth) {
      below = depth - 1;
      s->frames[below].address = f.address;
      found++;
    }
    f = st_python_caller(f);
  }
  return found;
}

/* Whether the calls that are known to be open are the present ones, up to the
 * frame `f`. */
static bool is_same_stack(const struct st_call_stack* s,
                          struct st_stack_frame f) {
  const struct st_frame* last = innermost(s);
  if (!last && !s->suspended.count)
    return true;
  for (int i = 0; f.address && i < ST_STACK_MAX_DEPTH; i++) {
    if (last && is_call(last, &f))
      return true;
    if (find(s, &f))
      return false;
    f = st_python_caller(f);
  }
  return !last;
}

static void keep(struct st_call_stack* s, const struct st_frame* f) {
  const struct st_suspended_call call = {
      .address = f->address,
      .of = f->key,
      .except = f->subject ? f->mask : ~f->mask};
  if (!st_suspended_add(&s->suspended, &call))
    st_hooks.counts.not_continued++;
}

/* The thread has left the stack of all its open calls. */
static void leave(struct st_call_stack* s, uint64_t time) {
  s->suspended.last = 0;
  for (uint32_t i = 0; i < s->depth; i++) {
    if (!s->frames[i].address)
      continue;
    keep(s, &s->frames[i]);
    if (!s->suspended.last)
      s->suspended.last = s->frames[i].address;
  }
  while (s->depth)
    close_innermost(s, NULL, NULL, time);
  s->beyond = 0;
}

/* Adds the suspended calls of the present stack to the open calls.  No Python
 * code runs meanwhile. */
static void add_present(struct st_call_stack* s, struct st_stack_frame f,
                        uint64_t now, uint64_t last_end) {
  static struct st_stack_frame stack[ST_STACK_MAX_DEPTH];
  int depth = 0;
  for (; f.address && depth < ST_STACK_MAX_DEPTH; f = st_python_caller(f))
    stack[depth++] = f;
  while (depth-- > 0) {
    const struct st_suspended_call* call = find(s, &stack[depth]);
    if (!call)
      continue;
    /* Where the last call of a stack has ended, the thread goes on where it has
     * come from. */
    if (!s->depth && last_end && call->address == s->suspended.last)
      now = last_end;
    struct st_frame* frame = push(s);
    if (frame)
      *frame = (struct st_frame){.key = call->of,
                                 .address = call->address,
                                 .timestamp = now,
                                 .mask = call->except};
    st_suspended_remove(&s->suspended, stack[depth].address);
  }
}

/* Handles the switches of the calling thread since its last event.  `entering`:
 * the call of its innermost frame is about to begin. */
static void follow_stack(struct st_call_stack* s, bool entering) {
  struct st_stack_frame f = own_frame();
  if (entering) {
    st_suspended_remove(&s->suspended, f.address);
    f = st_python_caller(f);
  }
  bool is_stale = !s->placed && !place_frames(s, f);
  s->placed = true;
  if (!is_stale && is_same_stack(s, f))
    return;
  uint64_t now = st_hooks.api->now();
  uint64_t last = s->last_event ? s->last_event : now;
  uint64_t last_end = s->depth ? 0 : last;
  if (s->depth)
    leave(s, last);
  if (!s->suspended.count)
    return;
  add_present(s, f, now, last_end);
  begin_pushed(s);
}

/* Returns the depth of the call that ends, which has this key; 0 if it is not
 * known. */
static uint32_t depth_on_stack(const struct st_call_stack* s, const void* key) {
  uint32_t depth = s->depth;
  if (PyCode_Check((PyObject*)(uintptr_t)key)) {
    uint64_t address = own_frame().address;
    while (depth && s->frames[depth - 1].address != address)
      depth--;
    return depth;
  }
  while (depth && s->frames[depth - 1].key != key)
    depth = s->frames[depth - 1].address ? 0 : depth - 1;
  return depth;
}

/* Returns the address of the calling thread's innermost frame, which is that of
 * the call that begins if `subject` is its code; 0 if it is not needed. */
static uint64_t follow_switches(struct st_call_stack* s, PyObject* subject) {
  if (!st_hooks.greenlets)
    return 0;
  bool entering = PyCode_Check(subject);
  follow_stack(s, entering);
  return entering ? st_python_frame(PyThreadState_Get()).address : 0;
}

/* Notes the end of an event. */
static void note_event(struct st_call_stack* s) {
  if (st_hooks.greenlets)
    s->last_event = st_hooks.api->now();
}

void st_call_stack_enter_slowly(struct st_call_stack* s, const void* key,
                                PyObject* subject, PyObject* arguments) {
  uint64_t address = follow_switches(s, subject);
  uint64_t now = st_hooks.min_duration_ns ? st_hooks.api->now() : 0;
  if (now)
    begin_all_due(s, now);
  if (s->beyond || s->depth >= st_hooks.max_depth || !make_room(s)) {
    s->beyond++;
    st_hooks.counts.too_deep++;
    return;
  }
  struct st_frame* f = &s->frames[s->depth++];
  *f = (struct st_frame){.key = key, .timestamp = now, .address = address};
  if (now) {
    f->cpu_us = st_hooks.cpu ? st_own_cpu_us() : 0;
    f->subject = Py_NewRef(subject);
    f->arguments = Py_XNewRef(arguments);
    f->mask = st_hooks.api->take_traced(subject);
  } else {
    begin(f, subject, arguments);
  }
  note_event(s);
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
  if (st_hooks.greenlets)
    follow_stack(s, false);
  uint32_t depth = 0;
  if (st_hooks.greenlets)
    depth = depth_on_stack(s, key);
  else if (!s->beyond)
    depth = depth_of(s, key);
  if (!depth) {
    s->beyond -= s->beyond > 0;
    return;
  }
  s->beyond = 0;
  st_hooks.counts.unfinished += s->depth - depth;
  while (s->depth > depth)
    close_innermost(s, NULL, NULL, 0);
  close_innermost(s, raised, arguments, 0);
  note_event(s);
}

void st_call_stack_flush(void) {
  struct st_call_stack* s = st_thread_stack;
  if (s && s->generation == st_hooks.generation && st_hooks.min_duration_ns)
    begin_all_due(s, st_hooks.api->now());
}
