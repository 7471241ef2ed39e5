#include "hooks/stack_samples.h"

#include <string.h>
#include <unistd.h>

#include "hooks/backend.h"
#include "hooks/c_calls.h"
#include "hooks/code_filter.h"
#include "hooks/python_layout.h"
#include "hooks/stack_switches.h"
#include "probes/sample_gaps.h"

enum { WORDS = 1 << 16, HEAD = 12, FRAME = 3, GAP = 3 };

/* The kinds of what is in the ring: the upper half of its first word. */
enum { STACK, ENDED_THREAD, NO_SAMPLES };

static uint64_t ring[WORDS];
/* The sampling thread puts samples into the ring; a thread with the GIL takes
 * them out.  Each of the two positions is stored with release order, and the
 * other side loads it with acquire order.  So words are read only after they
 * were written, and overwritten only after they were read. */
static _Atomic uint64_t put_at, taken_at;
static bool taking;
static struct st_sample_gaps gaps; /* The gaps that were taken. */
/* The counters below are statistics, which order no other memory access. */
_Atomic uint64_t st_samples_lost, st_samples_torn;

static void put_word(uint64_t* at, uint64_t word) {
  ring[(*at)++ % WORDS] = word;
}

static uint64_t take_word(uint64_t* at) {
  return ring[(*at)++ % WORDS];
}

/* Returns whether the ring has room for so many words at the position `at`. */
static bool has_room(uint64_t at, uint64_t words) {
  uint64_t used = at - atomic_load_explicit(&taken_at, memory_order_acquire);
  if (WORDS - used >= words)
    return true;
  atomic_fetch_add(&st_samples_lost, 1);
  return false;
}

static uint64_t kind_and_depth(uint64_t kind, int depth) {
  return kind << 32 | (uint64_t)depth;
}

bool st_samples_put(const struct st_stack_sample* s) {
  uint64_t at = atomic_load_explicit(&put_at, memory_order_relaxed);
  if (!has_room(at, HEAD + FRAME * (uint64_t)s->depth))
    return false;
  put_word(&at, kind_and_depth(s->gone ? ENDED_THREAD : STACK, s->depth));
  put_word(&at, (uint64_t)(uintptr_t)s->thread);
  put_word(&at, s->thread_id);
  put_word(&at, s->native_id);
  put_word(&at, s->time);
  put_word(&at, s->read);
  put_word(&at, s->before);
  put_word(&at, (uint64_t)s->known);
  put_word(&at, s->instruction);
  put_word(&at, s->wait_begin);
  put_word(&at, s->wait_end);
  put_word(&at, s->cpu_ns);
  for (int i = 0; i < s->depth; i++) {
    put_word(&at, s->frames[i].address);
    put_word(&at, s->frames[i].code);
    put_word(&at, s->frames[i].globals);
  }
  atomic_store_explicit(&put_at, at, memory_order_release);
  return true;
}

bool st_samples_put_gap(uint64_t begin, uint64_t end) {
  uint64_t at = atomic_load_explicit(&put_at, memory_order_relaxed);
  if (!has_room(at, GAP))
    return false;
  put_word(&at, kind_and_depth(NO_SAMPLES, 0));
  put_word(&at, begin);
  put_word(&at, end);
  atomic_store_explicit(&put_at, at, memory_order_release);
  return true;
}

bool st_samples_are_many(void) {
  return atomic_load_explicit(&put_at, memory_order_relaxed) -
             atomic_load_explicit(&taken_at, memory_order_relaxed) >
         WORDS / 4;
}

bool st_samples_waiting(void) {
  return atomic_load_explicit(&put_at, memory_order_acquire) !=
         atomic_load_explicit(&taken_at, memory_order_relaxed);
}

void st_samples_start(void) {
  atomic_store(&taken_at, atomic_load(&put_at));
  atomic_store(&st_samples_lost, 0);
  atomic_store(&st_samples_torn, 0);
  taking = false;
  gaps = (struct st_sample_gaps){.least = ST_SAMPLE_GAP_NS};
}

static bool is_call(const struct st_shown_frame* f,
                    const struct st_stack_frame* frame) {
  return f->address == frame->address &&
         (uint64_t)(uintptr_t)f->record->code == frame->code;
}

/* Returns the index of the frame in seen[first .. below), or -1.  The search
 * begins at the outermost frame. */
static int find_call(const struct st_shown_frame* f,
                     const struct st_stack_frame* seen, int first, int below) {
  while (--below >= first && !is_call(f, &seen[below])) {
  }
  return below >= first ? below : -1;
}

/* Closes the innermost frames, those from `index` on.  `certain`: they are not
 * on the present stack.  So those that are in the sample may have ended until
 * now, and the others until the sample was read. */
static void close_from(struct st_shown_calls* s, uint32_t index,
                       const struct st_stack_sample* from, bool certain) {
  bool in_sample = false;
  for (uint32_t i = index; certain && i < s->depth && !in_sample; i++)
    in_sample = find_call(&s->frames[i], from->frames, 0, from->depth) >= 0;
  if (in_sample)
    s->now = st_hooks.api->now();
  st_shown_cut(s, index);
}

/* Closes the shown frames that are not among the outermost `known` frames of the
 * stack.  Returns false, and changes nothing, if the stack contradicts the
 * events. */
static bool close_missing(struct st_shown_calls* s,
                          const struct st_stack_frame* seen, int depth,
                          const struct st_stack_sample* from, bool certain) {
  int known = from->known;
  int first = !ST_CALLS_ARE_REPORTED && known < depth ? depth - known : 0;
  uint32_t first_missing = s->depth;
  int below = depth;
  for (uint32_t i = 0; i < s->depth; i++) {
    const struct st_shown_frame* f = &s->frames[i];
    int at = find_call(f, seen, first, below);
    if (at >= 0 && first_missing < s->depth)
      return false;
    if (at < 0 && !f->sampled && !certain)
      return false;
    if (at < 0 && first_missing == s->depth)
      first_missing = i;
    if (at >= 0)
      below = at;
  }
  close_from(s, first_missing, from, certain);
  return true;
}

/* A sample has found the frame.  `known`: it is certainly the same call. */
static void see_again(struct st_shown_frame* f,
                      const struct st_stack_sample* from, bool known) {
  if (f->last < from->time)
    f->last = from->time;
  if (!f->sampled)
    return;
  if (!known)
    st_shown_may_begin_later(f, from->read);
  f->samples++;
  f->confirmed = f->confirmed || f->samples >= 2;
}

/* Whether the begin of a frame may still be moved. */
static bool is_movable(const struct st_shown_frame* f) {
  return f->found && !f->written;
}

static uint64_t later_of(uint64_t time, uint64_t other) {
  return time > other ? time : other;
}

/* Returns the earliest begin of a new frame at `index`.  The outer frames that
 * can be moved begin at least 1 ns after each other.  A new innermost frame, and
 * those that it moves, begin after the last measured wait. */
static uint64_t earliest_begin(const struct st_shown_calls* s, uint32_t index) {
  uint64_t waited = index == s->depth ? s->measured.end : 0;
  uint64_t least = later_of(s->left_at, waited);
  uint32_t i = index;
  while (i > 0 && is_movable(&s->frames[i - 1]) &&
         !s->frames[i - 1].child_end && s->frames[i - 1].begin > waited)
    i--;
  if (i > 0) {
    const struct st_shown_frame* f = &s->frames[i - 1];
    least = later_of(f->child_end ? f->child_end - 1 : f->begin, waited);
  }
  return least ? least + 1 + index - i : index;
}

/* Moves the begins of outer frames back, so that they are before the begin of
 * the frame at `index`. */
static void begin_earlier(struct st_shown_calls* s, uint32_t index) {
  for (uint32_t i = index; i-- > 0 && is_movable(&s->frames[i]);) {
    struct st_shown_frame* f = &s->frames[i];
    if (f->begin < f[1].begin)
      return;
    f->begin = f[1].begin - 1;
  }
}

/* Whether a call that is on the stack, but not among the shown frames, began
 * while its function was switched off.  If a call on another thread has switched
 * it on since, and the call is the innermost one, it may also be one whose event
 * is being handled. */
static bool began_switched_off(const struct st_shown_calls* s,
                               const struct st_code_record* r, bool innermost) {
  enum st_code_state state = atomic_load(&r->state);
  return state == ST_CODE_OFF || (state == ST_CODE_ON && r->off_until &&
                                  (!innermost || s->last_event < r->off_until));
}

/* Inserts a call that no event has reported, at `index`.  The call began at the
 * time `begin` or earlier, after the sample before.  Returns false if the
 * called function was not switched off, if there is no room, or if the call
 * cannot begin before `most`, the begin of a slice in it. */
static bool add_call(struct st_shown_calls* s, uint32_t index,
                     const struct st_stack_frame* frame, bool innermost,
                     const struct st_stack_sample* from, uint64_t begin,
                     uint64_t most) {
  struct st_code_record* r = st_code_record_find(frame->code);
  const struct st_suspended_call* call =
      r && s->suspended.count ? st_switches_find(s, frame) : NULL;
  if (!r || !(call || began_switched_off(s, r, innermost)))
    return false;
  uint64_t least = earliest_begin(s, index);
  if (index < s->depth && s->frames[index].begin <= begin)
    begin = s->frames[index].begin - 1;
  else if (begin < least)
    begin = least;
  struct st_shown_frame* f = begin < least || begin >= most
                                 ? NULL
                                 : st_shown_insert(s, index, frame->address, r);
  if (!f)
    return false;
  f->begin = f->last = begin;
  f->cpu_ns = from->cpu_ns;
  /* An inner call that is closed may be one of this call: `least` is no limit. */
  f->unsure_ns = begin > from->before ? begin - from->before : 0;
  f->later_ns = from->read - from->time;
  if (f->last < from->time)
    f->last = from->time;
  f->samples = 1;
  if (call)
    st_switches_continue(s, f, call);
  begin_earlier(s, index);
  return true;
}

/* Code without a record may be freed already, so it is not read. */
static enum st_caller caller_in(const struct st_stack_frame* frame) {
  const struct st_code_record* r = st_code_record_find(frame->code);
  return r ? st_code_as_caller(r->code) : ST_CALLER_OWN;
}

/* Whether foreign code has called the foreign code of the frame seen[at]. */
static bool is_inner_foreign(const struct st_stack_frame* seen, int at,
                             int depth) {
  if (!st_hooks.some_foreign || caller_in(&seen[at]) != ST_CALLER_FOREIGN)
    return false;
  enum st_caller caller = ST_CALLER_SKIPPED;
  while (caller == ST_CALLER_SKIPPED && ++at < depth)
    caller = caller_in(&seen[at]);
  return caller != ST_CALLER_OWN;
}

/* Returns the number of innermost frames that a span has called.  The other
 * frames began before it.  Returns `depth` if there is no such span. */
static int called_in(const struct st_span* span,
                     const struct st_stack_frame* seen, int depth) {
  int at = span->begin ? 0 : depth;
  while (at < depth && seen[at].address != span->frame)
    at++;
  return at;
}

/* Does the same with a garbage collection.  Returns `depth` if the collector did
 * not run at the time of the sample. */
static int called_by_collector(const struct st_shown_calls* s,
                               const struct st_stack_frame* seen, int depth,
                               uint64_t time) {
  const struct st_span* c = &s->collection;
  if (time < c->begin || (c->end && time > c->end))
    return depth;
  return called_in(c, seen, depth);
}

/* Does the same with a measured wait. */
static int called_in_wait(const struct st_shown_calls* s,
                          const struct st_stack_frame* seen, int depth,
                          uint64_t time) {
  return time < s->measured.begin ? depth
                                  : called_in(&s->measured, seen, depth);
}

/* Inserts the stack's new frames between the frames that are already known.
 * Confirms the frames that an earlier sample has found and that are still on
 * the stack. */
static void add_seen(struct st_shown_calls* s,
                     const struct st_stack_frame* seen, int depth,
                     const struct st_stack_sample* from) {
  uint32_t i = 0;
  int in_collector = called_by_collector(s, seen, depth, from->time);
  int in_step = s->step.end ? depth : called_in(&s->step, seen, depth);
  int in_wait = called_in_wait(s, seen, depth, from->time);
  uint64_t first = from->time > s->step.begin ? from->time : s->step.begin + 1;
  for (int at = depth - 1; at >= 0; at--) {
    uint64_t most = at >= in_step        ? s->step.begin
                    : at >= in_collector ? s->collection.begin
                    : at >= in_wait      ? s->measured.begin - 1
                                         : UINT64_MAX;
    uint64_t begin = most <= first ? most - 1 : first;
    if (i < s->depth && is_call(&s->frames[i], &seen[at])) {
      see_again(&s->frames[i], from, depth - at <= from->known);
      i++;
    } else if (!is_inner_foreign(seen, at, depth) &&
               add_call(s, i, &seen[at], at == 0, from, begin, most)) {
      i++;
    }
  }
}

static bool is_shown(const struct st_shown_calls* s,
                     const struct st_stack_frame* frame) {
  for (uint32_t i = s->depth; i-- > 0;) {
    if (is_call(&s->frames[i], frame))
      return true;
  }
  return false;
}

static bool was_seen(const struct st_stack_sample* from,
                     const struct st_stack_frame* frame) {
  for (int i = 0; i < from->depth; i++) {
    if (from->frames[i].address == frame->address)
      return from->frames[i].code == frame->code;
  }
  return false;
}

/* Copies those frames of the thread's present stack that are in the sample,
 * or that events have reported.  Returns the number of frames, or -1 if the
 * stack cannot be read. */
static int real_stack(const struct st_shown_calls* s,
                      const struct st_stack_sample* from, bool entering,
                      struct st_stack_frame* out) {
  PyThreadState* thread = st_shown_thread(s);
  if (!thread)
    return -1;
  struct st_stack_frame f = st_python_frame(thread);
  if (entering && s == st_thread_shown)
    f = st_python_caller(f);
  int depth = 0;
  for (int steps = 0; f.address; steps++, f = st_python_caller(f)) {
    if (steps == ST_STACK_MAX_DEPTH)
      return -1;
    if (was_seen(from, &f) || is_shown(s, &f) || f.address == s->step.frame ||
        (s->suspended.count && st_switches_find(s, &f)))
      out[depth++] = f;
  }
  return depth;
}

/* Whether the innermost frame of the sample is in a measured wait. */
static bool is_measured(const struct st_shown_calls* s,
                        const struct st_stack_sample* from) {
  return from->depth &&
         called_in_wait(s, from->frames, from->depth, from->time) == 0;
}

/* Handles the wait in which the innermost frame of the sample is. */
static void add_wait(struct st_shown_calls* s,
                     const struct st_stack_sample* from) {
  struct st_code_record* r = st_code_record_find(from->frames[0].code);
  if (!r || (r->state == ST_CODE_NEVER && !r->starter))
    return;
  uint64_t first =
      (uint64_t)(uintptr_t)((PyCodeObject*)r->code)->co_code_adaptive;
  uint64_t event = later_of(s->last_event, s->measured.end);
  uint64_t earliest = later_of(from->wait_begin, event + 1);
  uint64_t begin = later_of(from->before, s->measured.end + 1);
  if (is_measured(s, from))
    earliest = begin = s->measured.begin - 1;
  st_wait_begins(s, from->frames[0].address, r->code,
                 (int)(from->instruction - first), earliest, begin);
  st_backend_watch_calls(r);
}

/* Writes an instant with the length of a gap, at its end.  The gap is one of all
 * threads, on the track of the main thread, or one of the thread `s`. */
static void write_gap(struct st_shown_calls* s, uint64_t begin, uint64_t end) {
  PyObject* name = PyUnicode_InternFromString(
      s ? "no stack samples of this thread" : "no stack samples");
  struct st_past_event e = {
      .timestamp = end,
      .track =
          st_hooks.api->thread_track(s ? s->native_id : (uint64_t)getpid()),
      .arguments =
          Py_BuildValue("{sK}", "for_ns", (unsigned long long)(end - begin))};
  if (name && e.track && e.arguments)
    st_hooks.api->instant_past(st_hooks.category, name, &e);
  PyErr_Clear();
  Py_XDECREF(e.arguments);
  Py_XDECREF(e.track);
  Py_XDECREF(name);
}

/* The sample was merged: the time since the last merged one is known. */
static void note_merged(struct st_shown_calls* s, uint64_t begin,
                        uint64_t end) {
  s->missed_since = 0;
  if (st_sample_gaps_tell(&gaps, begin, end))
    write_gap(s, begin, end);
}

/* The sample can't be merged.  The sampling thread passes the thread's next one
 * although its stack may be the same. */
static void drop_sample(struct st_shown_calls* s,
                        const struct st_stack_sample* from) {
  if (!s->missed_since || from->known < s->missed_known)
    s->missed_known = from->known;
  if (!s->missed_since)
    s->missed_since = from->before;
  atomic_fetch_add(&from->thread->events, 1);
  atomic_fetch_add(&st_samples_torn, 1);
}

/* Leaves the open calls if the thread has switched to another stack since. */
static void leave_for(struct st_shown_calls* s,
                      const struct st_stack_frame* seen, int depth,
                      const struct st_stack_sample* from) {
  uint64_t until = s->last_event;
  if (s->last_sample_time >= until && from->before > until)
    until = from->before;
  uint64_t limit = from->time > until ? from->time : until;
  st_switches_leave_for(s, seen, depth, until, limit);
}

/* Whether a measured wait has ended since the sample, which may lie in it. */
static bool is_late(const struct st_shown_calls* s,
                    const struct st_stack_sample* from) {
  return from->time <= s->measured.end;
}

static void merge(struct st_shown_calls* s, const struct st_stack_sample* from,
                  bool entering) {
  static struct st_stack_frame real[ST_STACK_MAX_DEPTH];
  const struct st_stack_frame* seen = from->frames;
  int depth = from->depth;
  bool certain = s->last_event >= from->time;
  s->now = from->read;
  st_shown_extend(s, from->before);
  if (certain) {
    /* CPython 3.11 may have begun other calls of the same functions since. */
    depth = ST_CALLS_ARE_REPORTED ? real_stack(s, from, entering, real) : -1;
    seen = real;
  }
  if (!st_shown_found_measured(s))
    st_wait_ends(s, from->before, from->wait_end);
  if (s->cpu.read_at < from->time)
    s->cpu = (struct st_cpu_time){from->time, from->cpu_ns};
  uint64_t last_event = s->last_event;
  if (st_hooks.greenlets && ST_CALLS_ARE_REPORTED && depth > 0 && s->depth)
    leave_for(s, seen, depth, from);
  /* While ENDs are written, the thread itself may run: then the sample is old. */
  if (depth < 0 || !close_missing(s, seen, depth, from, certain) ||
      s->last_event != last_event || is_late(s, from)) {
    drop_sample(s, from);
    return;
  }
  add_seen(s, seen, depth, from);
  if (from->instruction && !certain && from->depth &&
      !st_shown_found_measured(s))
    add_wait(s, from);
  s->last_sample_time = from->time;
  st_shown_write_due(s, from->time);
  note_merged(s, from->before, from->time);
}

/* Makes a record of the code that runs in a frame, unless it has one, or was
 * freed.  May run Python code. */
static void make_record(const struct st_stack_frame* frame) {
  if (st_code_record_find(frame->code))
    return;
  PyObject* code = Py_XNewRef(st_python_code_at(frame->code));
  PyObject* globals = Py_XNewRef(st_python_dict_at(frame->globals));
  if (code) {
    st_code_accepted_in(code, globals);
    st_code_record_get(code);
  }
  Py_XDECREF(globals);
  Py_XDECREF(code);
}

static void take_stack(uint64_t* at, bool entering) {
  static struct st_stack_frame frames[ST_STACK_MAX_DEPTH];
  uint64_t head = take_word(at);
  struct st_stack_sample from = {.gone = head >> 32 == ENDED_THREAD,
                                 .depth = (int)(uint32_t)head,
                                 .frames = frames};
  from.thread = (struct st_last_sample*)(uintptr_t)take_word(at);
  from.thread_id = take_word(at);
  from.native_id = take_word(at);
  from.time = take_word(at);
  from.read = take_word(at);
  from.before = take_word(at);
  from.known = (int)take_word(at);
  from.instruction = take_word(at);
  from.wait_begin = take_word(at);
  from.wait_end = take_word(at);
  from.cpu_ns = take_word(at);
  for (int i = 0; i < from.depth; i++) {
    frames[i].address = take_word(at);
    frames[i].code = take_word(at);
    frames[i].globals = take_word(at);
    if (!ST_CALLS_ARE_REPORTED)
      make_record(&frames[i]);
  }
  struct st_shown_calls* s = st_shown_of(from.thread_id, from.native_id);
  if (!s)
    return;
  if (s->missed_since) {
    from.before = s->missed_since;
    if (s->missed_known < from.known)
      from.known = s->missed_known;
  }
  if ((s->busy && s != st_thread_shown) || (!from.gone && is_late(s, &from))) {
    drop_sample(s, &from);
    return;
  }
  s->last_sample = from.thread;
  if (!ST_CALLS_ARE_REPORTED && !from.gone)
    st_shown_note_name(s);
  if (from.gone) {
    s->now = from.time;
    /* The thread may have waited since an earlier reading. */
    if (s->cpu.read_at < from.before)
      s->cpu = (struct st_cpu_time){from.before, from.cpu_ns};
    st_shown_extend(s, from.before);
    st_shown_gone(s);
  } else {
    merge(s, &from, entering);
  }
}

static void take(uint64_t* at, bool entering) {
  if (ring[*at % WORDS] >> 32 != NO_SAMPLES) {
    take_stack(at, entering);
    return;
  }
  take_word(at);
  uint64_t begin = take_word(at);
  uint64_t end = take_word(at);
  st_sample_gaps_add(&gaps, begin, end);
  write_gap(NULL, begin, end);
}

/* The time of what is next in the ring: of the sample, or of the gap's end. */
static uint64_t next_time(uint64_t at) {
  return ring[(at + (ring[at % WORDS] >> 32 == NO_SAMPLES ? 2 : 4)) % WORDS];
}

/* The sampling thread overwrites no sample before it was taken. */
uint64_t st_samples_wait_since(void) {
  uint64_t at = atomic_load_explicit(&taken_at, memory_order_acquire);
  return at == atomic_load_explicit(&put_at, memory_order_relaxed)
             ? 0
             : next_time(at);
}

bool st_samples_take(bool entering, uint64_t before) {
  if (taking)
    return false;
  /* The first event of a thread runs Python code.  It may not do so while the
   * calls of other threads are being changed. */
  st_hooks.api->prepare();
  if (taking)
    return false;
  taking = true;
  while (st_samples_waiting()) {
    uint64_t at = atomic_load_explicit(&taken_at, memory_order_relaxed);
    if (next_time(at) >= before)
      break;
    take(&at, entering);
    atomic_store_explicit(&taken_at, at, memory_order_release);
  }
  if (!st_samples_waiting())
    st_shown_reap();
  taking = false;
  return true;
}
