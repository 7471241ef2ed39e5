#include "hooks/auto_detail.h"

#include <unistd.h>

#include "hooks/backend.h"
#include "hooks/c_calls.h"
#include "hooks/code_filter.h"
#include "hooks/coroutine_bounds.h"
#include "hooks/fork_call.h"
#include "hooks/merging_thread.h"
#include "hooks/python_layout.h"
#include "hooks/sampler_totals.h"
#include "hooks/shared_totals.h"
#include "hooks/shown_calls.h"
#include "hooks/stack_sampler.h"
#include "hooks/stack_samples.h"
#include "hooks/stack_switches.h"
#include "hooks/threshold_file.h"

#define LONG_SAMPLING_NS UINT64_C(10000000)

static uint64_t traced_threshold;

/* Returns the name of the instant event of a threshold. */
static PyObject* threshold_name(uint64_t ns) {
  const char* unit = ns % 1000000000 == 0 ? "s" : ns % 1000000 ? "us" : "ms";
  uint64_t units = ns / (*unit == 's'   ? 1000000000
                         : *unit == 'u' ? 1000
                                        : 1000000);
  return PyUnicode_FromFormat(
      "from here on, calls shorter than %llu %s are counted, not shown",
      (unsigned long long)units, unit);
}

/* Writes an instant event into the trace if the threshold has risen. */
static void write_threshold(uint64_t now) {
  uint64_t threshold = atomic_load(&st_hooks.threshold_ns);
  if (ST_LIKELY(threshold == traced_threshold))
    return;
  traced_threshold = threshold;
  PyObject* name = threshold_name(threshold);
  struct st_past_event e = {
      .timestamp = now,
      .track = ST_CALLS_ARE_REPORTED
                   ? NULL
                   : st_hooks.api->thread_track((uint64_t)getpid())};
  if (name && (e.track || ST_CALLS_ARE_REPORTED))
    st_hooks.api->instant_past(st_hooks.category, name, &e);
  else
    PyErr_Clear();
  Py_XDECREF(e.track);
  Py_XDECREF(name);
}

/* Whether the merging thread has anything to do.  Needs no GIL. */
static bool must_merge(void) {
  return st_samples_waiting() ||
         atomic_load(&st_hooks.threshold_ns) != traced_threshold;
}

/* Makes the merging thread busy.  Its first event runs Python code, and so do
 * names of functions: their calls are left out, and merge no samples, which could
 * not be written before that event.  Returns its calls, for the caller to reset
 * `busy`; NULL if calls are not reported or not recorded, or out of memory. */
static struct st_shown_calls* begin_merging(void) {
  bool may_be_called = ST_CALLS_ARE_REPORTED && st_hooks.running;
  struct st_shown_calls* own = may_be_called ? st_shown_get() : NULL;
  if (own)
    own->busy = true;
  return own;
}

/* Merges the samples in the ring, on the merging thread. */
static void merge(void) {
  if (!st_hooks.running)
    return;
  struct st_shown_calls* own = begin_merging();
  st_samples_take(false, UINT64_MAX);
  if (!ST_CALLS_ARE_REPORTED)
    write_threshold(st_hooks.api->now());
  if (own)
    own->busy = false;
}

/* Writes the BEGINs of the calls of a thread that are certainly open: its stack
 * is that of its last sample. */
static void write_open_calls(struct st_shown_calls* s, uint64_t now) {
  uint64_t until = st_shown_unchanged_until(s, now);
  if (s->busy || s->missed_since || until <= s->last_event ||
      until < s->last_sample_time)
    return;
  st_shown_write_due(s, until);
  st_c_calls_write_open(s, until);
}

/* The same for all threads, on the merging thread. */
static void write_open(void) {
  struct st_shown_calls* own = begin_merging();
  if (st_hooks.running && st_samples_take(false, UINT64_MAX))
    st_shown_visit(write_open_calls, st_hooks.api->now());
  if (own)
    own->busy = false;
}

void st_auto_resume(void) {
  const struct st_merging functions = {must_merge, merge, write_open};
  st_hooks.may_switch_off = st_sampler_start() && st_merging_start(&functions);
}

void st_auto_pause(void) {
  st_sampler_stop();
  st_merging_stop();
}

/* Leaves out the functions that are open at the start: those of the
 * interpreter's own start.  Where calls are reported, they are not known. */
static void leave_out_open_calls(void) {
  struct st_stack_frame f = st_python_frame(PyThreadState_Get());
  for (; !ST_CALLS_ARE_REPORTED && f.address; f = st_python_caller(f)) {
    struct st_code_record* r = st_code_record_get((PyObject*)(uintptr_t)f.code);
    if (r)
      atomic_store(&r->state, ST_CODE_NEVER);
  }
}

void st_auto_start(const char* threshold_file) {
  st_shown_watch_forks();
  st_samples_start();
  st_totals_start();
  st_hooks.some_off = !ST_CALLS_ARE_REPORTED;
  st_shown_counts = (struct st_shown_counts){0};
  atomic_store(&st_hooks.threshold_ns, ST_DEFAULT_THRESHOLD_NS);
  traced_threshold = ST_DEFAULT_THRESHOLD_NS;
  st_threshold_use_file(threshold_file);
  st_sampler_forget_threads();
  st_sampler_forget_gap();
  leave_out_open_calls();
  st_auto_resume();
}

void st_auto_begin_in_child(void) {
  st_samples_start();
  st_backend_restart();
}

void st_auto_begin_sampling(void) {
  st_hooks.in_new_child = false;
  st_hooks.some_off = !ST_CALLS_ARE_REPORTED;
  st_shown_counts = (struct st_shown_counts){0};
  st_sampler_forget_threads();
  st_sampler_forget_totals();
  st_sampler_forget_gap();
  st_code_records_restart();
  st_auto_resume();
}

/* Handles the first call in the child of a fork.  May run Python code, which
 * may stop the tracer. */
static void begin_first_call(void) {
  st_auto_begin_sampling();
  st_hooks.api->prepare();
}

/* Returns the times of a thread as a dict. */
static PyObject* times_object(const struct st_thread_times* t) {
  uint64_t waiting = t->waiting_ns, ready = t->ready_ns;
  if (!st_sampler_totals.knows_ready)
    return Py_BuildValue("{sKsK}", "running_ns",
                         (unsigned long long)t->running_ns, "waiting_ns",
                         (unsigned long long)waiting);
  ready = ready < waiting ? ready : waiting;
  return Py_BuildValue("{sKsKsK}", "running_ns",
                       (unsigned long long)t->running_ns, "ready_ns",
                       (unsigned long long)ready, "blocked_ns",
                       (unsigned long long)(waiting - ready));
}

/* Returns the times of all threads, as a dict by thread id. */
static PyObject* times_of_threads(void) {
  PyObject* dict = PyDict_New();
  const struct st_thread_times* t;
  for (uint32_t i = 0; dict && (t = st_sampler_times_at(i)); i++) {
    PyObject* key =
        PyUnicode_FromFormat("%llu", (unsigned long long)t->native_id);
    PyObject* times = key ? times_object(t) : NULL;
    if (!times || PyDict_SetItem(dict, key, times) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(times);
    Py_XDECREF(key);
  }
  return dict;
}

/* Whether the process has had samples that are worth an event. */
static bool has_samples(void) {
  const struct st_sampler_totals* l = &st_sampler_totals;
  return st_hooks.some_off || l->running_ns + l->waiting_ns >= LONG_SAMPLING_NS;
}

void st_auto_write_period(void) {
  if (!has_samples())
    return;
  PyObject* name = PyUnicode_InternFromString("stack samples");
  PyObject* threads = times_of_threads();
  struct st_past_event e = {
      .timestamp = st_hooks.api->now(),
      .arguments =
          threads ? Py_BuildValue(
                        "{sKsKsN}", "period_ns",
                        (unsigned long long)st_sampling_period_ns(),
                        "longest_gap_ns",
                        (unsigned long long)st_sampler_totals.longest_gap_ns,
                        "threads", threads)
                  : NULL};
  if (name && e.arguments)
    st_hooks.api->instant_past(st_hooks.category, name, &e);
  PyErr_Clear();
  Py_XDECREF(e.arguments);
  Py_XDECREF(name);
}

void st_auto_end_slices(void) {
  st_auto_pause();
  st_samples_take(false, UINT64_MAX);
  uint64_t now = st_hooks.api->now();
  st_shown_visit(st_shown_read_cpu, now);
  st_shown_visit(st_c_calls_end, now);
  st_shown_end_all(now);
}

void st_auto_stop(void) {
  st_auto_end_slices();
  st_call_sites_clear();
  st_code_records_clear();
}

/* Returns the time until which the stack of the calling thread was unchanged.
 * While a sample of it may be in the ring, that is its last merged sample. */
static uint64_t unchanged_until(const struct st_shown_calls* s, uint64_t now) {
  uint64_t until = st_shown_unchanged_until(s, now);
  return st_samples_waiting() ? s->last_sample_time : until;
}

/* Merges the samples in the ring that are older than the event at `now`
 * (stack_samples.h).  Returns the open calls of the calling thread, which are
 * busy: another thread that runs meanwhile leaves them alone.  Returns NULL when
 * out of memory, or if the thread is handling another event. */
static inline struct st_shown_calls* merge_older(uint64_t now, bool entering) {
  bool is_new = !st_thread_shown;
  struct st_shown_calls* s = st_shown_get();
  if (ST_UNLIKELY(!s || s->busy))
    return NULL;
  s->busy = true;
  if (ST_UNLIKELY(st_samples_waiting()))
    st_samples_take(entering, now);
  else if (ST_UNLIKELY(is_new))
    st_shown_reap();
  s->now = now;
  if (ST_UNLIKELY(s->sampled))
    st_shown_extend(s, unchanged_until(s, now));
  return s;
}

/* Merges those samples, and ends the wait that samples have found. */
static struct st_shown_calls* up_to_date(uint64_t now, bool entering) {
  struct st_shown_calls* s = merge_older(now, entering);
  if (ST_UNLIKELY(!s))
    return NULL;
  if (ST_UNLIKELY(s->c_calls.wait.site) && !st_shown_found_measured(s))
    st_wait_ends(s, unchanged_until(s, now), now);
  if (ST_UNLIKELY(st_hooks.greenlets))
    st_switches_follow(s, now, entering);
  write_threshold(now);
  s->busy = false;
  return s;
}

/* Called when the interpreter reports a call of a function that is switched
 * off.  Returns whether the sampling thread has armed the function, and so
 * requested the report.  If so, switches the function on until its next short
 * call. */
static bool wakes(struct st_code_record* r, uint64_t now) {
  if (!atomic_load_explicit(&r->armed, memory_order_relaxed))
    return false;
  atomic_store(&r->armed, false);
  r->off_until = now;
  r->short_row = ST_SHORT_CALLS - 1;
  atomic_store(&r->state, ST_CODE_ON);
  return true;
}

/* Returns false: the result of st_auto_enter() that stops the reports. */
static bool stops_reports(struct st_code_record* r) {
  st_code_record_stops_reports(r);
  return false;
}

static uint64_t own_frame(void) {
  return st_python_frame(PyThreadState_Get()).address;
}

static bool is_never_recorded(PyObject* code) {
  const struct st_code_record* r =
      st_code_record_find((uint64_t)(uintptr_t)code);
  return r && r->state == ST_CODE_NEVER;
}

bool st_auto_enter(PyObject* code, bool resumes) {
  if (ST_UNLIKELY(st_hooks.api->is_untraced()))
    return !is_never_recorded(code);
  struct st_code_record* r = st_code_record_get(code);
  if (ST_UNLIKELY(!r))
    return false;
  if (ST_UNLIKELY(r->state == ST_CODE_NEVER)) {
    if (r->may_block && st_hooks.running)
      st_backend_watch_calls(r);
    return false;
  }
  if (ST_UNLIKELY(st_hooks.in_new_child)) {
    if (st_fork_call_is_open())
      return true;
    begin_first_call();
  }
  if (ST_UNLIKELY(!st_hooks.running))
    return true;
  if (ST_UNLIKELY(r->may_block))
    st_backend_watch_calls(r);
  uint64_t now = st_hooks.api->now();
  struct st_shown_calls* s = up_to_date(now, true);
  if (ST_UNLIKELY(!s))
    return true;
  if (st_code_suspends(code))
    st_coroutine_step_begins(code, own_frame(), now, resumes);
  if (r->state == ST_CODE_OFF && !wakes(r, now))
    return stops_reports(r);
  if (ST_UNLIKELY(st_hooks.some_foreign) && st_call_is_inner_foreign(code)) {
    st_shown_count_short(r);
    return r->state == ST_CODE_ON || stops_reports(r);
  }
  s->busy = true;
  st_shown_enter(s, own_frame(), r, now, resumes);
  s->busy = false;
  return true;
}

bool st_auto_leave(PyObject* code, PyObject* raised, PyObject* yielded) {
  struct st_code_record* r = st_code_record_find((uint64_t)(uintptr_t)code);
  /* Without a record, the call began before tracing or on an untraced thread.
   * The function may get a record at its next call. */
  if (ST_UNLIKELY(!r))
    return st_code_records_count() < ST_MAX_CODE_RECORDS;
  if (ST_UNLIKELY(r->state == ST_CODE_NEVER))
    return false;
  if (ST_UNLIKELY(st_hooks.in_new_child))
    return true; /* The child has no call of its own yet. */
  uint64_t now = st_hooks.api->now();
  struct st_shown_calls* s = up_to_date(now, false);
  if (ST_UNLIKELY(!s))
    return true;
  if (st_code_suspends(code))
    st_coroutine_step_ends(code, own_frame(), now, yielded);
  s->busy = true;
  bool found = st_shown_leave(s, own_frame(), r, now, raised);
  s->busy = false;
  return found || r->state == ST_CODE_ON;
}

bool st_auto_c_call(PyObject* code, PyObject* offset, PyObject* callable) {
  const struct st_code_record* r =
      st_code_record_find((uint64_t)(uintptr_t)code);
  if (!r || (r->state == ST_CODE_NEVER && !r->starter))
    return false;
  if (st_hooks.api->is_untraced() ||
      (st_hooks.some_foreign && st_call_is_inner_foreign(code)))
    return true;
  uint64_t now = st_hooks.api->now();
  struct st_shown_calls* s = up_to_date(now, false);
  return !s || st_c_call_begins(s, own_frame(), r, (int)PyLong_AsLong(offset),
                                callable, now);
}

void st_auto_c_return(void) {
  uint64_t now = st_hooks.api->now();
  struct st_shown_calls* s = up_to_date(now, false);
  if (!s)
    return;
  s->busy = true;
  st_c_call_ends(s, own_frame(), now);
  s->busy = false;
}

static bool is_on(void) {
  return st_hooks.running && st_hooks.auto_detail && !st_hooks.in_new_child;
}

/* Returns the open calls of the calling thread at a begin or end of a span.
 * Returns NULL if auto detail does not run. */
static struct st_shown_calls* calls_at_span(uint64_t now) {
  return is_on() ? up_to_date(now, false) : NULL;
}

void st_auto_collection_begins(void) {
  struct st_shown_calls* s = calls_at_span(st_hooks.api->now());
  if (s)
    s->collection = (struct st_span){.frame = own_frame(), .begin = s->now};
}

void st_auto_collection_ends(void) {
  struct st_shown_calls* s = calls_at_span(st_hooks.api->now());
  if (s && s->collection.begin && !s->collection.end)
    st_shown_collection_ends(s, s->now);
}

struct st_span st_auto_step_begins(uint64_t now) {
  struct st_shown_calls* s = calls_at_span(now);
  if (!s)
    return (struct st_span){0};
  struct st_span outer = s->step;
  st_shown_note_event(s, now);
  s->step = (struct st_span){.frame = own_frame(), .begin = now};
  return outer;
}

void st_auto_step_ends(uint64_t now) {
  struct st_shown_calls* s = calls_at_span(now);
  if (!s || !s->step.begin)
    return;
  s->busy = true;
  st_shown_note_event(s, now);
  st_shown_settle(s, s->step.frame);
  s->busy = false;
}

uint64_t st_auto_step_end(uint64_t begin, uint64_t now) {
  const struct st_shown_calls* s = st_thread_shown;
  if (!st_hooks.greenlets || !st_hooks.running || !st_hooks.auto_detail || !s ||
      s->generation != st_hooks.generation)
    return now;
  if (s->step.begin != begin)
    return 0;
  return s->step.end ? s->step.end : now;
}

void st_auto_step_is_over(uint64_t begin, struct st_span outer, bool written) {
  struct st_shown_calls* s = st_thread_shown;
  if (!s || s->generation != st_hooks.generation || s->step.begin != begin)
    return;
  if (written)
    st_shown_step_written(s, st_hooks.api->now());
  s->step = outer;
}

ST_HOT void st_auto_note_wait(PyThreadState* thread, uint64_t begin) {
  struct st_shown_calls* s = st_thread_shown;
  if (ST_UNLIKELY(!s || s->generation != st_hooks.generation))
    s = is_on() ? st_shown_get() : NULL;
  if (ST_UNLIKELY(!s || s->busy || s->measured.begin))
    return;
  s->measured.frame = st_python_frame(thread).address;
  s->measured.begin = begin;
}

/* Ends the wait that samples have found.  If it is the measured one, its slice is
 * 1 ns longer at both ends; another one ended before. */
static void end_found_wait(struct st_shown_calls* s, uint64_t end) {
  uint64_t before = s->measured.begin - 1;
  if (st_shown_found_measured(s))
    st_wait_ends(s, end + 1, end + 1);
  else
    st_wait_ends(s, unchanged_until(s, before - 1), before);
}

/* Handles what samples have found until the end of a measured wait. */
__attribute__((noinline)) static void look_at_samples(struct st_shown_calls* s,
                                                      uint64_t end) {
  s->sampled_stacks = atomic_load(&st_sampled_stacks);
  if (!is_on() || !merge_older(end, false))
    return;
  st_shown_measured_ends(s, end + 1);
  end_found_wait(s, end);
  s->busy = false;
}

ST_HOT void st_auto_end_wait(uint64_t begin, uint64_t end) {
  struct st_shown_calls* s = st_thread_shown;
  if (ST_UNLIKELY(!s || s->measured.begin != begin))
    return;
  bool has_news = s->sampled_stacks != atomic_load(&st_sampled_stacks) ||
                  s->last_sample_time > s->measured.end;
  if (ST_UNLIKELY(end && has_news))
    look_at_samples(s, end);
  s->measured.begin = 0;
  if (end)
    s->measured.end = end;
}

static PyObject* totals_of_function(const struct st_code_record* r) {
  PyCodeObject* code = (PyCodeObject*)r->code;
  const struct st_function_totals none = {0}, *t = st_totals_at(r->totals);
  if (!t)
    t = &none;
  PyObject* calls =
      r->was_off ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(r->calls);
  if (!calls)
    return NULL;
  return Py_BuildValue(
      "(OOiNKKKK)", st_code_name(r->code), code->co_filename,
      code->co_firstlineno, calls, (unsigned long long)r->total_ns,
      (unsigned long long)t->own_ns, (unsigned long long)t->time_ns,
      (unsigned long long)t->waiting_ns);
}

static PyObject* totals_of_functions(void) {
  PyObject* list = PyList_New(0);
  for (uint32_t i = 0; list && i < st_code_records_count(); i++) {
    const struct st_code_record* r = st_code_record_at(i);
    if (r->state == ST_CODE_NEVER)
      continue;
    PyObject* item = totals_of_function(r);
    if (!item || PyList_Append(list, item) < 0)
      Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

PyObject* st_auto_totals(void) {
  const struct st_sampler_totals* l = &st_sampler_totals;
  const struct st_shown_counts* c = &st_shown_counts;
  PyObject* functions = totals_of_functions();
  if (!functions)
    return NULL;
  return Py_BuildValue("{sNsKsKsKsKsKsKsKsKsKsKsK}", "functions", functions,
                       "sampling_rounds", (unsigned long long)l->rounds,
                       "running_ns", (unsigned long long)l->running_ns,
                       "waiting_ns", (unsigned long long)l->waiting_ns,
                       "longest_gap_ns", (unsigned long long)l->longest_gap_ns,
                       "period_ns", (unsigned long long)st_sampling_period_ns(),
                       "shown", (unsigned long long)c->shown, "found",
                       (unsigned long long)c->found, "counted",
                       (unsigned long long)c->counted, "threshold_ns",
                       (unsigned long long)st_hooks.threshold_ns,
                       "samples_lost", (unsigned long long)st_samples_lost,
                       "samples_torn", (unsigned long long)st_samples_torn);
}
