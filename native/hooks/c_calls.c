#include "hooks/c_calls.h"

#include "hooks/c_functions.h"

struct long_call {
  struct st_call_site* site;
  PyObject* name; /* NULL: that of the site. */
  uint64_t frame; /* The address of the frame that calls; 0 if unknown. */
  uint64_t begin, end;
  /* The call may have lasted this much longer, before and after. */
  uint64_t unsure_ns;
  /* The thread's CPU times at the begin and end of the call, in us; 0 if
   * unknown. */
  uint64_t cpu_at_begin, cpu_at_end;
  PyObject* arguments;
};

/* Returns the frame that calls, if the thread is still in it or in a function
 * that it has just called.  The address is 0 otherwise. */
static struct st_stack_frame calling_frame(const struct st_shown_calls* s,
                                           const struct st_call_site* site,
                                           uint64_t frame) {
  PyThreadState* thread = frame ? st_shown_thread(s) : NULL;
  if (!thread)
    return (struct st_stack_frame){0};
  struct st_stack_frame f = st_python_frame(thread);
  if (f.address != frame)
    f = st_python_caller(f);
  bool same = f.address == frame && f.code == (uint64_t)(uintptr_t)site->code;
  return same ? f : (struct st_stack_frame){0};
}

static PyObject* name_of(const struct st_shown_calls* s,
                         const struct long_call* call) {
  if (call->name)
    return call->name;
  struct st_call_site* site = call->site;
  return site->name
             ? site->name
             : st_call_site_name(site, calling_frame(s, site, call->frame));
}

static bool is_shown(const struct long_call* call) {
  uint64_t least = atomic_load(&st_hooks.threshold_ns);
  if (least < ST_LONG_C_CALL_NS)
    least = ST_LONG_C_CALL_NS;
  return call->end + call->unsure_ns >= call->begin + least;
}

/* Writes the BEGIN of a call that was open until its `end`.  Meanwhile another
 * thread may run, and end the call: so `slice` has all that the END needs before.
 */
static void begin_slice(struct st_shown_calls* s, const struct long_call* call,
                        bool is_open, struct st_c_slice* slice) {
  const struct st_track_event_api* api = st_hooks.api;
  struct st_past_event e = {.thread_time_us = call->cpu_at_begin};
  PyObject* name = name_of(s, call);
  if (!name || !st_shown_track(s, &e.track))
    return;
  e.timestamp = st_shown_fit(s, call->begin, is_open ? 0 : call->end);
  uint64_t until = call->end > e.timestamp ? call->end : e.timestamp + 1;
  *slice = (struct st_c_slice){until, api->enabled(st_hooks.category),
                               *api->start_counter};
  Py_INCREF(name);
  st_shown_write_due(s, until);
  uint32_t mask = api->begin_past(st_hooks.category, name, 0, &e);
  Py_DECREF(name);
  if (slice->until == until)
    *slice = (struct st_c_slice){until, mask, *api->start_counter};
}

static void end_slice(struct st_shown_calls* s, const struct long_call* call,
                      const struct st_c_slice* slice) {
  struct st_past_event e = {.timestamp = slice->until,
                            .thread_time_us = call->cpu_at_end,
                            .arguments = call->arguments};
  if (slice->mask && st_shown_track(s, &e.track))
    st_hooks.api->end_past(slice->mask, slice->since, &e);
  st_shown_counts.shown++;
}

/* Writes a call that has ended, or its END if `slice` has begun. */
static void write_call(struct st_shown_calls* s, const struct long_call* call,
                       struct st_c_slice slice) {
  if (slice.until) {
    slice.until = call->end > slice.until ? call->end : slice.until;
    st_shown_fit(s, UINT64_MAX, slice.until);
  } else if (is_shown(call)) {
    begin_slice(s, call, false, &slice);
  }
  if (slice.until)
    end_slice(s, call, &slice);
}

static struct long_call reported(const struct st_c_call* call, uint64_t end) {
  return (struct long_call){.site = call->site,
                            .name = call->name,
                            .begin = call->begin,
                            .end = end,
                            .cpu_at_begin = st_cpu_us(call->cpu_ns)};
}

/* Writes a call that events have reported. */
static void write_reported(struct st_shown_calls* s,
                           const struct st_c_call* call, uint64_t end) {
  struct long_call c = reported(call, end);
  c.cpu_at_end = st_shown_thread_time_us(s, call->cpu_ns, call->begin, end);
  write_call(s, &c, call->slice);
}

/* Drops the calls of a frame that begins another call, and those above it: they
 * ended without an event. */
static void drop_calls_of(struct st_shown_calls* s, uint64_t frame) {
  for (uint32_t i = 0; i < s->c_calls.depth; i++) {
    if (s->c_calls.open[i].frame == frame)
      st_shown_cut_c_calls(s, i);
  }
}

bool st_c_call_begins(struct st_shown_calls* s, uint64_t frame,
                      const struct st_code_record* caller, int offset,
                      PyObject* callable, uint64_t now) {
  struct st_c_calls* c = &s->c_calls;
  drop_calls_of(s, frame);
  struct st_call_site* site = st_is_c_function(callable)
                                  ? st_call_site_get(caller->code, offset)
                                  : NULL;
  if (!site)
    return caller->starter;
  if (site->short_row >= ST_SHORT_C_CALLS && !caller->starter) {
    site->short_row = ST_SHORT_C_CALLS - 1;
    return false;
  }
  PyObject* name = st_call_site_rename(site, st_c_function_name(callable));
  st_shown_note_event(s, now);
  if (c->depth == ST_OPEN_C_CALLS)
    st_shown_cut_c_calls(s, 0);
  c->open[c->depth++] = (struct st_c_call){
      .frame = frame,
      .begin = now,
      .site = site,
      .name = Py_XNewRef(name),
      .cpu_ns = st_cpu_now(&s->cpu, s->native_id, now, ST_CPU_AGE_AT_BEGIN_NS)};
  return true;
}

void st_c_call_ends(struct st_shown_calls* s, uint64_t frame, uint64_t now) {
  struct st_c_calls* c = &s->c_calls;
  for (uint32_t i = c->depth; i-- > 0;) {
    if (c->open[i].frame != frame)
      continue;
    st_shown_cut_c_calls(s, i + 1);
    struct st_c_call call = c->open[i];
    c->depth = i;
    bool is_long = now - call.begin >= ST_LONG_C_CALL_NS;
    call.site->short_row = is_long ? 0 : call.site->short_row + 1;
    st_shown_note_event(s, now);
    st_shown_note_wait_end(s);
    if (is_long) {
      st_shown_settle(s, frame);
      write_reported(s, &call, now);
    }
    Py_XDECREF(call.name);
    return;
  }
}

void st_wait_begins(struct st_shown_calls* s, uint64_t frame, PyObject* code,
                    int offset, uint64_t at_earliest, uint64_t begin) {
  struct st_c_calls* c = &s->c_calls;
  if (c->depth && c->open[c->depth - 1].frame == frame)
    return;
  c->wait = (struct st_wait){.site = st_call_site_get(code, offset),
                             .frame = frame,
                             .begin = st_shown_fit(s, begin, 0),
                             .begin_at_earliest = at_earliest,
                             .cpu_ns = s->cpu.cpu_ns};
  /* When the wait is known to have ended, the loop may be over. */
  if (c->wait.site && !c->wait.site->name)
    st_call_site_name_loop(c->wait.site, calling_frame(s, c->wait.site, frame));
}

/* The call in which a wait is that was open until `end`. */
static struct long_call waiting(const struct st_wait* w, uint64_t end) {
  return (struct long_call){.site = w->site,
                            .frame = w->frame,
                            .begin = w->begin,
                            .end = end,
                            .cpu_at_begin = st_cpu_us(w->cpu_ns)};
}

void st_wait_ends(struct st_shown_calls* s, uint64_t end, uint64_t at_latest) {
  struct st_wait w = s->c_calls.wait;
  s->c_calls.wait = (struct st_wait){0};
  if (!w.site)
    return;
  uint64_t earlier =
      w.begin > w.begin_at_earliest ? w.begin - w.begin_at_earliest : 0;
  uint64_t later = at_latest > end ? at_latest - end : 0;
  struct long_call call = waiting(&w, end);
  call.unsure_ns = earlier + later;
  call.cpu_at_end = call.cpu_at_begin ? call.cpu_at_begin + 1 : 0;
  call.arguments = Py_BuildValue(
      "{sKsK}", "begins_up_to_ns_earlier", (unsigned long long)earlier,
      "ends_up_to_ns_later", (unsigned long long)later);
  PyErr_Clear();
  st_shown_counts.found++;
  write_call(s, &call, w.slice);
  Py_XDECREF(call.arguments);
}

/* Whether a C function has called a Python function that is still open: then the
 * thread is not waiting in the C function. */
static bool has_called(const struct st_shown_calls* s,
                       const struct st_c_call* call) {
  const struct st_shown_frame* f = s->depth ? &s->frames[s->depth - 1] : NULL;
  return f && !f->found && f->begin >= call->begin;
}

static void write_open(struct st_shown_calls* s, const struct long_call* call,
                       struct st_c_slice* slice) {
  if (slice->until || !is_shown(call))
    return;
  begin_slice(s, call, true, slice);
  /* The calls that contain it end later. */
  for (uint32_t i = 0; i < s->depth; i++) {
    if (s->frames[i].last <= slice->until)
      s->frames[i].last = slice->until + 1;
  }
}

/* A call with later events in it is left alone: its end may have been missed. */
void st_c_calls_write_open(struct st_shown_calls* s, uint64_t until) {
  struct st_c_calls* c = &s->c_calls;
  struct st_c_call* inner = c->depth ? &c->open[c->depth - 1] : NULL;
  if (inner && inner->begin == s->last_event) {
    struct long_call call = reported(inner, until);
    write_open(s, &call, &inner->slice);
  }
  if (c->wait.site) {
    struct long_call call = waiting(&c->wait, until);
    write_open(s, &call, &c->wait.slice);
  }
}

void st_c_calls_end(struct st_shown_calls* s, uint64_t now) {
  struct st_c_calls* c = &s->c_calls;
  st_wait_ends(s, st_shown_unchanged_until(s, now), now);
  while (c->depth) {
    struct st_c_call* call = &c->open[c->depth - 1];
    if (!has_called(s, call)) {
      write_reported(s, call, now);
      call->slice.until = 0;
    }
    st_shown_cut_c_calls(s, c->depth - 1);
  }
}
