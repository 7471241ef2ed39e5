/* Longer than 600 lines: the open calls of a thread are changed here only. */
#include "hooks/shown_calls.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/coroutine_bounds.h"
#include "hooks/python_layout.h"

enum {
  FIRST_CAPACITY = 64,
  /* A returning call's frame is searched only among this number of innermost
   * frames. */
  MAX_SEARCH = 64,
  /* The largest number of callers of a frame that are examined. */
  MAX_CALLERS = 1024,
};

_Thread_local struct st_shown_calls* st_thread_shown;
struct st_shown_counts st_shown_counts;
/* While the threads are visited, another one may run. */
static bool visiting;

static void forget_own(void) {
  st_thread_shown = NULL;
}

/* Ends the slice of a call whose end was missed. */
static void end_c_slice(struct st_shown_calls* s, struct st_c_slice* slice) {
  struct st_c_slice copy = *slice;
  struct st_past_event e = {.timestamp = copy.until};
  slice->until = 0;
  if (copy.until && copy.mask && st_shown_track(s, &e.track))
    st_hooks.api->end_past(copy.mask, copy.since, &e);
}

void st_shown_cut_c_calls(struct st_shown_calls* s, uint32_t depth) {
  struct st_c_calls* c = &s->c_calls;
  while (c->depth > depth) {
    struct st_c_call* call = &c->open[--c->depth];
    end_c_slice(s, &call->slice);
    Py_CLEAR(call->name);
  }
}

/* Closes all calls of a thread that has ended.  A wait lasts as long as the
 * innermost call is known to. */
static void close_all(struct st_shown_calls* s) {
  struct st_c_slice* wait = &s->c_calls.wait.slice;
  uint64_t last = s->depth ? s->frames[s->depth - 1].last : 0;
  if (wait->until && wait->until + 1 < last)
    wait->until = last - 1;
  end_c_slice(s, wait);
  s->c_calls.wait = (struct st_wait){0};
  st_shown_cut_c_calls(s, 0);
  st_shown_cut(s, 0);
}

static void forget(struct st_shown_calls* s) {
  s->depth = s->begun = s->sampled = 0;
  while (s->c_calls.depth)
    Py_CLEAR(s->c_calls.open[--s->c_calls.depth].name);
  s->c_calls = (struct st_c_calls){0};
  s->collection = s->step = s->measured = (struct st_span){0};
  s->cpu = (struct st_cpu_time){0};
  st_suspended_clear(&s->suspended);
  s->left_at = 0;
  Py_CLEAR(s->track);
  s->is_track_used = false;
  s->name_looks = 0;
}

/* Frees the struct of a thread.  If the thread has ended, ends its open calls
 * before, which may run Python code. */
static void free_calls(struct st_thread_record* record, bool ended) {
  struct st_shown_calls* s = (struct st_shown_calls*)record;
  if (ended && s->generation == st_hooks.generation) {
    s->now = st_hooks.api->now();
    st_shown_refresh(s, UINT64_MAX);
    close_all(s);
  }
  forget(s);
  PyMem_RawFree(s->frames);
  PyMem_RawFree(s);
}

static struct st_thread_list threads = {.on_exit = forget_own,
                                        .free_record = free_calls};

void st_shown_watch_forks(void) {
  st_thread_list_init(&threads);
}

static struct st_shown_calls* calls_of(struct st_thread_record* record) {
  return (struct st_shown_calls*)record;
}

static void begin_generation(struct st_shown_calls* s, uint64_t native_id) {
  if (s->generation == st_hooks.generation)
    return;
  forget(s);
  /* A fork changes the thread id, so it is stored again here. */
  s->native_id = native_id;
  s->last_event = s->last_sample_time = s->missed_since = 0;
  s->run_ns = 0;
  s->last_sample = NULL;
  s->busy = false;
  s->generation = st_hooks.generation;
}

/* Returns the calls of a thread, which may have ended; NULL if there are none. */
static struct st_shown_calls* find_calls(uint64_t thread_id) {
  struct st_thread_record* r = threads.first;
  while (r && r->thread_id != thread_id)
    r = r->next;
  return calls_of(r);
}

PyThreadState* st_shown_thread(const struct st_shown_calls* s) {
  PyThreadState* t = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  while (t && t->id != s->thread.thread_id)
    t = PyThreadState_Next(t);
  return t;
}

struct st_shown_calls* st_shown_of(uint64_t thread_id, uint64_t native_id) {
  struct st_shown_calls* s = find_calls(thread_id);
  if (!s) {
    s = PyMem_RawCalloc(1, sizeof *s);
    if (!s)
      return NULL;
    st_thread_list_add(&threads, &s->thread, thread_id);
  }
  begin_generation(s, native_id);
  return s;
}

struct st_shown_calls* st_shown_get(void) {
  struct st_shown_calls* s = st_thread_shown;
  if (ST_LIKELY(s && s->generation == st_hooks.generation))
    return s;
  uint64_t native_id = (uint64_t)syscall(SYS_gettid);
  if (s) {
    begin_generation(s, native_id);
    return s;
  }
  s = st_shown_of(PyThreadState_GetID(PyThreadState_Get()), native_id);
  st_thread_shown = s;
  if (s)
    st_thread_list_claim(&s->thread);
  return s;
}

void st_shown_gone(struct st_shown_calls* s) {
  close_all(s);
  st_thread_list_mark_ended(&s->thread);
}

void st_shown_reap(void) {
  if (!visiting)
    st_thread_list_reap(&threads);
}

static bool make_room(struct st_shown_calls* s) {
  if (s->depth < s->capacity)
    return true;
  uint32_t capacity = s->capacity ? s->capacity * 2 : FIRST_CAPACITY;
  if (capacity > ST_SHOWN_CALLS)
    return false;
  void* grown = PyMem_RawRealloc(s->frames, capacity * sizeof *s->frames);
  if (!grown)
    return false;
  s->frames = grown;
  s->capacity = capacity;
  return true;
}

static uint64_t threshold(void) {
  return atomic_load_explicit(&st_hooks.threshold_ns, memory_order_relaxed);
}

static void make_track(struct st_shown_calls* s) {
  PyObject* track = st_hooks.api->thread_track(s->native_id);
  if (track)
    Py_XSETREF(s->track, track);
  else
    PyErr_Clear();
}

void st_shown_note_name(struct st_shown_calls* s) {
  enum { LOOKS = 4 };
  if (s == st_thread_shown || s->is_track_used || s->name_looks == LOOKS)
    return;
  s->name_looks++;
  if (st_hooks.api->has_thread_name(s->native_id))
    make_track(s);
}

bool st_shown_track(struct st_shown_calls* s, PyObject** track) {
  *track = NULL;
  if (s == st_thread_shown)
    return true;
  /* It may have got another name since. */
  if (!s->track ||
      (!s->is_track_used && st_hooks.api->has_thread_name(s->native_id)))
    make_track(s);
  s->is_track_used = true;
  *track = s->track;
  return s->track != NULL;
}

static void add_number(PyObject* dict, const char* name, uint64_t value) {
  PyObject* number = PyLong_FromUnsignedLongLong(value);
  if (number && PyDict_SetItemString(dict, name, number) < 0)
    PyErr_Clear();
  Py_XDECREF(number);
}

static void add_text(PyObject* dict, const char* name, const char* value) {
  PyObject* text = PyUnicode_InternFromString(value);
  if (text && PyDict_SetItemString(dict, name, text) < 0)
    PyErr_Clear();
  Py_XDECREF(text);
}

static void add_exception(PyObject* dict, PyTypeObject* type) {
  PyObject* name = PyType_GetQualName(type);
  if (!name || PyDict_SetItemString(dict, "exception", name) < 0)
    PyErr_Clear();
  Py_XDECREF(name);
}

static void write_begin(struct st_shown_calls* s, struct st_shown_frame* f) {
  const struct st_track_event_api* api = st_hooks.api;
  struct st_past_event e = {.timestamp = f->begin,
                            .thread_time_us = st_cpu_us(f->cpu_ns)};
  f->written = true;
  if (!st_shown_track(s, &e.track))
    return;
  f->mask = api->begin_past(st_hooks.category, f->record->code, f->except, &e);
  f->since = *api->start_counter;
}

/* Returns the arguments of a slice as a dict: the counts of the short calls in
 * it, and the accuracy of its times.  Returns NULL if the slice has no
 * arguments. */
static PyObject* end_arguments(const struct st_shown_frame* f, PyObject* raised,
                               uint64_t ends_later) {
  if (!f->short_calls && !f->sampled && !raised)
    return NULL;
  PyObject* dict = PyDict_New();
  if (!dict)
    return NULL;
  if (raised)
    add_exception(dict, (PyTypeObject*)raised);
  if (f->short_calls) {
    add_number(dict, "short_calls", f->short_calls);
    add_number(dict, "short_calls_ns", f->short_ns);
    if (st_hooks.some_off)
      add_text(dict, "calls_of_functions_switched_off", "not counted");
  }
  if (ends_later)
    add_number(dict, "ends_up_to_ns_later", ends_later);
  if (f->found)
    add_number(dict, "begins_up_to_ns_earlier", f->unsure_ns);
  if (f->later_ns)
    add_number(dict, "begins_up_to_ns_later", f->later_ns);
  return dict;
}

/* Reads the CPU time of a thread at the end of a call.  After the outermost one
 * the thread may end, so that reading is exact. */
static void read_cpu_at_end(struct st_shown_calls* s, uint64_t end) {
  st_cpu_now(&s->cpu, s->native_id, end, s->depth ? ST_CPU_AGE_AT_END_NS : 0);
  if (s->last_sample)
    atomic_store_explicit(&s->last_sample->cpu_ns, s->cpu.cpu_ns,
                          memory_order_relaxed);
}

/* Returns the thread's CPU time at the end of a call: at most the present one, as
 * the thread may have waited since the last reading. */
static uint64_t cpu_at_end(struct st_shown_calls* s, uint64_t begin_cpu,
                           uint64_t begin, uint64_t end) {
  bool is_timed = end - begin >= ST_TIMED_CALL_NS || st_hooks.cpu;
  if (is_timed && end == s->last_event)
    read_cpu_at_end(s, end);
  uint64_t cpu = st_cpu_at(&s->cpu, end, begin_cpu);
  bool is_old = end > s->cpu.read_at + ST_CPU_AGE_AT_END_NS;
  uint64_t most = is_timed && is_old ? st_thread_cpu_ns(s->native_id) : 0;
  return most && most < cpu ? most : cpu;
}

uint64_t st_shown_thread_time_us(struct st_shown_calls* s, uint64_t begin_cpu,
                                 uint64_t begin, uint64_t end) {
  if (!begin_cpu)
    return 0;
  uint64_t us = st_cpu_us(cpu_at_end(s, begin_cpu, begin, end));
  uint64_t first = st_cpu_us(begin_cpu), most = (end - begin) / 1000;
  us = us > first ? us : first;
  us = us - first < most ? us : first + most;
  /* The trace processor ignores a thread time that has not changed. */
  return us > first ? us : first + 1;
}

static void write_end(struct st_shown_calls* s, const struct st_shown_frame* f,
                      uint64_t end) {
  struct st_past_event e = {
      .timestamp = end,
      .thread_time_us = st_shown_thread_time_us(s, f->cpu_ns, f->begin, end)};
  st_shown_counts.shown++;
  st_shown_counts.found += f->found;
  if (!f->mask || !st_shown_track(s, &e.track))
    return;
  e.arguments = end_arguments(f, s->raised, s->now > end ? s->now - end : 0);
  st_hooks.api->end_past(f->mask, f->since, &e);
  Py_XDECREF(e.arguments);
}

static bool may_be_shown(const struct st_shown_frame* f) {
  return !f->sampled || f->confirmed;
}

/* Writes the BEGIN of an open call.  Meanwhile another thread may run, and end
 * the call: so the frame has all that the END needs before. */
static void write_begin_at(struct st_shown_calls* s, uint32_t index) {
  struct st_shown_frame* f = &s->frames[index];
  f->written = true;
  f->since = *st_hooks.api->start_counter;
  f->mask = st_hooks.api->enabled(st_hooks.category) & ~f->except;
  struct st_shown_frame copy = *f;
  write_begin(s, &copy);
  f = &s->frames[index];
  if (index >= s->depth || f->address != copy.address || f->begin != copy.begin)
    return;
  f->mask = copy.mask;
  f->since = copy.since;
}

void st_shown_write_due(struct st_shown_calls* s, uint64_t now) {
  uint64_t least = threshold();
  uint32_t depth =
      s->depth < st_hooks.max_depth ? s->depth : st_hooks.max_depth;
  for (uint32_t i = s->begun; i < depth; i++) {
    struct st_shown_frame* f = &s->frames[i];
    bool due = !f->written && may_be_shown(f);
    if (due && now < f->begin + least)
      break;
    if (i == s->begun && (due || f->written))
      s->begun++;
    if (due)
      write_begin_at(s, i);
  }
}

void st_shown_count_short(struct st_code_record* r) {
  bool tiny = r->row_ns < threshold();
  if (++r->short_row >= (tiny ? ST_TINY_CALLS : ST_SHORT_CALLS) &&
      st_hooks.may_switch_off)
    st_shown_switch_off(r);
}

static void count_call(struct st_code_record* r, uint64_t duration,
                       bool resumed) {
  if (!resumed)
    atomic_store_explicit(&r->calls, r->calls + 1, memory_order_relaxed);
  r->total_ns += duration;
  st_code_record_publish(r);
  if (duration >= threshold()) {
    r->short_row = 0;
    r->row_ns = 0;
    return;
  }
  r->row_ns += duration;
  st_shown_count_short(r);
}

/* Returns the longest time that a call may have taken. */
static uint64_t longest(const struct st_shown_calls* s,
                        const struct st_shown_frame* f, uint64_t end) {
  uint64_t later = f->sampled && s->now > end ? s->now - end : 0;
  return end - f->begin + f->unsure_ns + later;
}

/* Counts a call that has ended in its caller, the innermost frame. */
static void add_to_caller(struct st_shown_calls* s,
                          const struct st_shown_frame* f, uint64_t end,
                          bool shown) {
  if (!s->depth)
    return;
  struct st_shown_frame* caller = &s->frames[s->depth - 1];
  caller->last = end + 1 > caller->last ? end + 1 : caller->last;
  caller->child_end = end + 1;
  if (shown)
    return;
  caller->short_calls += f->short_calls + (may_be_shown(f) ? 1 : 0);
  caller->short_ns += may_be_shown(f) ? end - f->begin : f->short_ns;
}

/* Whether a call, whose caller is the innermost frame, is deeper than calls are
 * shown.  It is counted then. */
static bool is_too_deep(const struct st_shown_calls* s,
                        const struct st_shown_frame* f) {
  if (f->written || s->depth < st_hooks.max_depth)
    return false;
  st_hooks.counts.too_deep++;
  return true;
}

/* Removes the innermost frame.  Its call has ended at the time `end`. */
static void close_innermost(struct st_shown_calls* s, uint64_t end) {
  struct st_shown_frame f = s->frames[--s->depth];
  if (s->begun > s->depth)
    s->begun = s->depth;
  s->sampled -= f.sampled;
  f.record->open--;
  if (end <= f.begin)
    end = f.begin + 1;
  if (f.sampled && st_code_suspends(f.record->code))
    st_coroutine_step_seen(f.record->code, f.address, f.found ? f.begin : 0,
                           f.unsure_ns, end);
  bool shown =
      f.written || (may_be_shown(&f) && longest(s, &f, end) >= threshold());
  bool too_deep = shown && is_too_deep(s, &f);
  shown = shown && !too_deep;
  add_to_caller(s, &f, end, shown);
  if (shown && !f.written) {
    st_shown_write_due(s, end);
    write_begin(s, &f);
  }
  if (shown)
    write_end(s, &f, end);
  else if (!too_deep && may_be_shown(&f))
    st_shown_counts.counted++;
  if (!f.found)
    count_call(f.record, end - f.begin, f.resumed);
}

void st_shown_extend(struct st_shown_calls* s, uint64_t time) {
  bool late = time <= s->measured.end;
  for (uint32_t i = 0; s->sampled && !late && i < s->depth; i++) {
    struct st_shown_frame* f = &s->frames[i];
    if (f->sampled && f->last >= s->last_sample_time && f->last < time)
      f->last = time;
  }
}

uint64_t st_shown_unchanged_until(const struct st_shown_calls* s,
                                  uint64_t now) {
  const struct st_last_sample* at = s->last_sample;
  if (!at || atomic_load(&at->thread_id) != s->thread.thread_id)
    return 0;
  uint64_t until = atomic_load(&at->until);
  return until < now ? until : now;
}

void st_shown_refresh(struct st_shown_calls* s, uint64_t now) {
  if (s->sampled)
    st_shown_extend(s, st_shown_unchanged_until(s, now));
}

/* Returns the latest time at which a call was certainly open.  A call that was
 * open before and during a garbage collection was open until its end. */
static uint64_t last_of(const struct st_shown_calls* s,
                        const struct st_shown_frame* f) {
  const struct st_span* c = &s->collection;
  bool contains =
      f->begin < c->begin && f->last >= c->begin && f->last <= c->end;
  return contains ? c->end + 1 : f->last;
}

void st_shown_collection_ends(struct st_shown_calls* s, uint64_t now) {
  s->collection.end = now;
  for (uint32_t i = 0; i < s->depth; i++)
    s->frames[i].last = last_of(s, &s->frames[i]);
}

void st_shown_measured_ends(struct st_shown_calls* s, uint64_t now) {
  uint32_t i = 0;
  for (; i < s->depth && s->frames[i].begin < s->measured.begin; i++) {
    struct st_shown_frame* f = &s->frames[i];
    bool contains = !f->sampled || f->last >= s->measured.begin;
    if (contains && f->last <= now)
      f->last = now + 1;
  }
  st_shown_cut(s, i);
}

void st_shown_step_written(struct st_shown_calls* s, uint64_t now) {
  for (uint32_t i = 0; i < s->depth; i++) {
    if (s->frames[i].last <= now)
      s->frames[i].last = now + 1;
  }
  if (s->depth)
    s->frames[s->depth - 1].child_end = now + 1;
}

void st_shown_cut(struct st_shown_calls* s, uint32_t depth) {
  while (s->depth > depth)
    close_innermost(s, last_of(s, &s->frames[s->depth - 1]));
}

uint64_t st_shown_end_innermost(struct st_shown_calls* s, uint64_t until,
                                uint64_t limit) {
  const struct st_shown_frame* f = &s->frames[s->depth - 1];
  uint64_t end = last_of(s, f);
  if (!f->sampled && end < until)
    end = until;
  end = end < limit ? end : limit;
  if (end <= f->begin)
    end = f->begin + 1;
  close_innermost(s, end);
  return end;
}

void st_shown_visit(void (*visit)(struct st_shown_calls* s, uint64_t now),
                    uint64_t now) {
  visiting = true;
  for (struct st_thread_record* r = threads.first; r; r = r->next) {
    struct st_shown_calls* s = calls_of(r);
    if (!r->lost && s->generation == st_hooks.generation)
      visit(s, atomic_load(&r->ended) ? s->last_sample_time : now);
  }
  visiting = false;
}

void st_shown_read_cpu(struct st_shown_calls* s, uint64_t now) {
  if (!atomic_load(&s->thread.ended))
    st_cpu_now(&s->cpu, s->native_id, now, 0);
}

static void end_calls(struct st_shown_calls* s, uint64_t now) {
  s->now = now;
  st_shown_refresh(s, now);
  st_shown_write_due(s, now);
  while (s->depth) {
    const struct st_shown_frame* f = &s->frames[s->depth - 1];
    bool open = !f->sampled && !atomic_load(&s->thread.ended);
    close_innermost(s, open ? now : last_of(s, f));
  }
}

void st_shown_end_all(uint64_t now) {
  st_shown_visit(end_calls, now);
}

static void choose_part(const struct st_shown_calls* s) {
  uint32_t most = ST_RUN_CALLS - 1, count = s->depth < most ? s->depth : most;
  _Atomic(struct st_code_record*)* ran = s->last_sample->ran;
  for (uint32_t i = 0; i < count; i++)
    atomic_store_explicit(&ran[i], s->frames[s->depth - 1 - i].record,
                          memory_order_relaxed);
  atomic_store_explicit(&ran[count], NULL, memory_order_relaxed);
}

/* Whether a sample since the last event has found the thread waiting. */
static bool has_waited(const struct st_shown_calls* s) {
  return atomic_load_explicit(&s->last_sample->waited, memory_order_relaxed) >
         s->last_event;
}

/* Adds the time since the last event to the run of the thread. */
static void add_run(struct st_shown_calls* s, uint64_t now) {
  uint64_t ns = now - s->last_event;
  uint64_t random = (uint32_t)now * 0x9E3779B1U >> 8;
  if (!s->depth || !s->last_event)
    return;
  if (has_waited(s)) {
    st_shown_note_wait_end(s);
    return;
  }
  s->run_ns += ns;
  if (random * s->run_ns >> 24 < ns)
    choose_part(s);
}

void st_shown_note_event(struct st_shown_calls* s, uint64_t now) {
  struct st_last_sample* last = s->last_sample;
  if (last) {
    add_run(s, now);
    atomic_store_explicit(&last->last_event, now, memory_order_relaxed);
    atomic_fetch_add_explicit(&last->events, 1, memory_order_relaxed);
  }
  s->last_event = now;
}

void st_shown_note_wait_end(struct st_shown_calls* s) {
  s->run_ns = 0;
}

static bool calls(uint64_t caller, uint64_t code, uint64_t frame,
                  uint64_t stop) {
  struct st_stack_frame f = {.address = frame};
  for (int i = 0; i < MAX_CALLERS; i++) {
    f = st_python_caller(f);
    if (f.address == caller)
      return f.code == code;
    if (!f.address || f.address == stop)
      return false;
  }
  /* The search has reached its limit.  The frame at `caller` is treated as a
   * caller; if that is wrong, a later sample corrects it. */
  return true;
}

static bool is_caller(const struct st_shown_calls* s,
                      const struct st_shown_frame* f, uint64_t frame) {
  if (!f->sampled)
    return true;
  uint64_t below = 0;
  for (uint32_t i = s->depth - 1; i-- && !below;) {
    if (!s->frames[i].sampled)
      below = s->frames[i].address;
  }
  return calls(f->address, (uint64_t)(uintptr_t)f->record->code, frame, below);
}

void st_shown_settle(struct st_shown_calls* s, uint64_t frame) {
  while (s->depth && s->frames[s->depth - 1].address != frame &&
         !is_caller(s, &s->frames[s->depth - 1], frame))
    st_shown_cut(s, s->depth - 1);
}

/* Closes innermost frames that cannot be open any more, because a call begins
 * at `address`. */
static void settle(struct st_shown_calls* s, uint64_t address) {
  do {
    st_shown_settle(s, address);
    if (!s->depth || s->frames[s->depth - 1].address != address)
      return;
    st_shown_cut(s, s->depth - 1);
  } while (true);
}

uint64_t st_shown_fit(struct st_shown_calls* s, uint64_t begin, uint64_t end) {
  uint64_t least = s->left_at, first = 0;
  for (uint32_t i = 0; i < s->depth; i++) {
    struct st_shown_frame* f = &s->frames[i];
    if (f->found && !f->written && f->begin >= begin) {
      uint64_t earlier = begin > least ? begin : least;
      uint64_t moved = f->begin > earlier ? f->begin - earlier : 0;
      f->later_ns += moved;
      f->unsure_ns -= moved < f->unsure_ns ? moved : f->unsure_ns;
      f->begin -= moved;
    }
    first = f->begin + 1;
    least = first > f->child_end ? first : f->child_end;
    if (f->last < end + 1)
      f->last = end + 1;
  }
  if (s->depth && end)
    s->frames[s->depth - 1].child_end = end + 1;
  else
    first = least;
  return begin > first ? begin : first;
}

void st_shown_enter(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now, bool resumed) {
  settle(s, address);
  st_shown_note_event(s, now);
  if (!make_room(s)) {
    st_hooks.counts.too_deep++;
    if (!resumed)
      atomic_store_explicit(&record->calls, record->calls + 1,
                            memory_order_relaxed);
    st_code_record_publish(record);
    return;
  }
  record->open++;
  s->frames[s->depth++] = (struct st_shown_frame){
      .address = address,
      .record = record,
      .begin = now,
      .last = now,
      .resumed = resumed,
      .cpu_ns = st_cpu_now(&s->cpu, s->native_id, now, ST_CPU_AGE_AT_BEGIN_NS),
      .except = st_hooks.api->take_traced(record->code)};
}

/* Returns the depth of a frame.  Returns 0 if the frame is not among the
 * MAX_SEARCH innermost ones. */
static uint32_t depth_of(const struct st_shown_calls* s, uint64_t address,
                         const struct st_code_record* record) {
  uint32_t depth = s->depth;
  for (int i = 0; depth && i < MAX_SEARCH; i++, depth--) {
    const struct st_shown_frame* f = &s->frames[depth - 1];
    if (f->address == address && f->record == record)
      return depth;
  }
  return 0;
}

void st_shown_may_begin_later(struct st_shown_frame* f, uint64_t time) {
  uint64_t since = atomic_load(&f->record->reported_since);
  uint64_t latest = since < time ? since : time;
  if (f->begin + f->later_ns < latest)
    f->later_ns = latest - f->begin;
}

bool st_shown_leave(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now,
                    PyObject* raised) {
  uint32_t depth = record->open ? depth_of(s, address, record) : 0;
  if (!depth)
    return false;
  st_shown_note_event(s, now);
  st_shown_cut(s, depth);
  if (s->frames[depth - 1].sampled)
    st_shown_may_begin_later(&s->frames[depth - 1], now);
  s->frames[depth - 1].last = now;
  st_shown_write_due(s, now);
  s->raised = raised;
  close_innermost(s, now);
  s->raised = NULL;
  return true;
}

struct st_shown_frame* st_shown_insert(struct st_shown_calls* s, uint32_t index,
                                       uint64_t address,
                                       struct st_code_record* record) {
  if (!make_room(s))
    return NULL;
  struct st_shown_frame* f = &s->frames[index];
  memmove(f + 1, f, (s->depth - index) * sizeof *f);
  s->depth++;
  s->sampled++;
  if (s->begun > index)
    s->begun = index;
  record->open++;
  *f = (struct st_shown_frame){
      .address = address, .record = record, .sampled = true, .found = true};
  return f;
}

void st_shown_switch_off(struct st_code_record* record) {
  record->was_off = st_hooks.some_off = true;
  st_code_record_publish(record);
  record->short_row = 0;
  record->row_ns = 0;
  atomic_store(&record->armed, false);
  atomic_store(&record->state, ST_CODE_OFF);
  for (struct st_thread_record* r = threads.first; r && record->open;
       r = r->next) {
    struct st_shown_calls* s = calls_of(r);
    if (s->generation != st_hooks.generation)
      continue;
    for (uint32_t i = 0; i < s->depth; i++) {
      struct st_shown_frame* f = &s->frames[i];
      if (f->record != record || f->sampled)
        continue;
      f->sampled = f->confirmed = true;
      s->sampled++;
    }
  }
}
