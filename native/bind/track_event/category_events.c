#include "bind/track_event/category_events.h"

#include "bind/track_event/argument_errors.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/emit_counter.h"
#include "bind/track_event/emit_fast.h"
#include "bind/track_event/emit_plain.h"
#include "bind/track_event/event_options.h"
#include "bind/track_event/event_template.h"
#include "bind/track_event/log_message.h"
#include "bind/track_event/misuse.h"
#include "bind/track_event/open_begins.h"
#include "bind/track_event/slice.h"
#include "bind/track_event/task_track.h"
#include "bind/track_event/track.h"
#include "core/session_slots.h"

PyObject* category_instant(PyObject* self, PyObject* const* args,
                           Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category_mask(category);
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  if (LIKELY(count == 1)) {
    /* A name without another reference was made for this call, so no id of it
     * is cached. */
    if (UNLIKELY(Py_REFCNT(args[0]) == 1))
      ;
    else if (kwnames)
      mask = emit_plain(ST_INSTANT, category, args[0], mask, kwnames, args + 1);
    else
      mask = emit_fast(ST_INSTANT, category, args[0], mask);
    if (LIKELY(!mask))
      Py_RETURN_NONE;
    mask =
        emit_new_name(ST_INSTANT, category, args[0], mask, kwnames, args + 1);
    if (!mask)
      Py_RETURN_NONE;
  }
  struct event_request r = {.type = ST_INSTANT, .category = category};
  if (!parse_event(&r, "instant", 1, args, count, kwnames))
    return NULL;
  st_emit(&r, mask);
  Py_RETURN_NONE;
}

/* Converts the arguments of log_message().  Returns false if an argument has a
 * wrong type. */
static bool take_log_message(struct log_message* log, PyObject* const* args) {
  log->message = args[1];
  log->priority = (uint32_t)PyLong_AsUnsignedLongMask(args[2]);
  log->file = args[3];
  log->function = args[4];
  log->line = (uint32_t)PyLong_AsUnsignedLongMask(args[5]);
  bool converted = !PyErr_Occurred();
  PyErr_Clear();
  return converted && PyUnicode_Check(log->message) &&
         PyUnicode_Check(log->file) && PyUnicode_Check(log->function);
}

PyObject* category_log_message(PyObject* self, PyObject* const* args,
                               Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category_mask(category);
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_INSTANT, .category = category};
  if (!parse_event(&r, "log_message", 6, args, count, kwnames))
    return NULL;
  struct log_message log;
  if (count > 0)
    r.name = args[0];
  if (count >= 6 && take_log_message(&log, args))
    r.log_message = &log;
  else if (!report_misuse(&r, PART_POSITIONAL, PyExc_TypeError,
                          "log_message() takes a name, a message, a priority, "
                          "a file, a function and a line"))
    return NULL;
  st_emit(&r, mask);
  Py_RETURN_NONE;
}

PyObject* category_slice(PyObject* self, PyObject* const* args,
                         Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  if (LIKELY(!category_mask(category)))
    return Py_NewRef(st_empty_slice);
  if (LIKELY(count == 1 && !kwnames))
    return slice_new_plain(category, args[0]);
  struct event_request r = {.type = ST_SLICE_BEGIN, .category = category};
  if (!parse_event(&r, "slice", 1, args, count, kwnames))
    return NULL;
  return slice_new(&r);
}

PyObject* category_slice_for_code(PyObject* self, PyObject* code) {
  CategoryObject* category = (CategoryObject*)self;
  if (LIKELY(!category_mask(category)))
    return Py_NewRef(st_empty_slice);
  struct event_request r = {.type = ST_SLICE_BEGIN, .category = category};
  if (PyCode_Check(code))
    r.code = code;
  else if (!report_misuse(&r, PART_POSITIONAL, PyExc_TypeError,
                          "_slice_for_code() takes a code object"))
    return NULL;
  return slice_new(&r);
}

static bool is_number(PyObject* value) {
  return PyNumber_Check(value) && !PyComplex_Check(value);
}

/* Checks the arguments of counter().  Returns false if no counter event can be
 * written.  An exception is then set if misuse raises (-X dev). */
static bool check_counter(struct event_request* r, PyObject* const* args,
                          Py_ssize_t count) {
  if (count < 2)
    return false;
  if (!is_number(args[1])) {
    report_misuse(r, PART_NONE, PyExc_TypeError,
                  "a counter's value must be a number, not %R",
                  (PyObject*)Py_TYPE(args[1]));
    return false;
  }
  return PyUnicode_Check(args[0]) ||
         report_misuse(r, PART_NONE, PyExc_TypeError,
                       "a counter's name must be a str, not %R",
                       (PyObject*)Py_TYPE(args[0]));
}

/* The name of the option `unit`, as an interned string. */
static PyObject* unit_name;

static bool is_unit(PyObject* keyword) {
  return keyword == unit_name || PyUnicode_Compare(keyword, unit_name) == 0;
}

/* Takes the option `unit` out of the arguments of a counter: a str, or NULL.
 * Returns false with an exception set if it is wrong and misuse raises. */
static bool take_unit(struct event_request* r, PyObject** unit) {
  Py_ssize_t count =
      r->argument_names ? PyTuple_GET_SIZE(r->argument_names) : 0;
  for (Py_ssize_t i = 0; i < count && i < 32; i++) {
    if (!is_unit(PyTuple_GET_ITEM(r->argument_names, i)))
      continue;
    r->skip_names |= 1u << i;
    *unit = r->argument_values[i];
    if (PyUnicode_Check(*unit))
      return true;
    bool none = *unit == Py_None;
    *unit = NULL;
    return none || report_misuse(r, PART_NONE, PyExc_TypeError,
                                 "a counter's unit must be a str");
  }
  return true;
}

/* Returns a new reference to the track of a counter.  If the __str__ of its
 * name fails, counts an argument error and returns NULL. */
static TrackObject* track_of_counter(PyObject* name, TrackObject* parent,
                                     PyObject* unit) {
  PyObject* text = PyUnicode_Check(name) ? Py_NewRef(name) : PyObject_Str(name);
  TrackObject* track =
      text ? counter_track(text, (PyObject*)parent, unit) : NULL;
  if (!track)
    swallow_error();
  Py_XDECREF(text);
  return track;
}

PyObject* category_counter(PyObject* self, PyObject* const* args,
                           Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category_mask(category);
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  bool plain = !kwnames || (PyTuple_GET_SIZE(kwnames) == 1 &&
                            is_unit(PyTuple_GET_ITEM(kwnames, 0)));
  if (LIKELY(count == 2 && plain)) {
    mask = emit_counter(args[0], args[1], mask);
    if (LIKELY(!mask))
      Py_RETURN_NONE;
  }
  struct event_request r = {.type = ST_COUNTER, .category = category};
  if (!parse_event(&r, "counter", 2, args, count, kwnames))
    return NULL;
  PyObject* unit = NULL;
  if (!take_unit(&r, &unit) || !check_counter(&r, args, count))
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
  if (!thread_state_get())
    Py_RETURN_NONE;
  TrackObject* track = track_of_counter(args[0], r.track, unit);
  if (!track)
    Py_RETURN_NONE;
  r.track = track;
  r.value = args[1];
  uint32_t written = st_emit(&r, mask);
  if (written && plain && PyUnicode_CheckExact(args[0]))
    remember_counter(args[0], track->core.uuid, written);
  Py_DECREF(track);
  Py_RETURN_NONE;
}

/* Returns the uuid of the track that begin() and end() use: the track that was
 * passed, else the track of the current task, else that of the thread. */
static uint64_t begin_track(struct thread_state* t, TrackObject* track) {
  if (track)
    return track_resolve(track)->uuid;
  if (context_changed(t))
    thread_state_refresh_task(t);
  return current_track_uuid(t);
}

PyObject* category_begin(PyObject* self, PyObject* const* args,
                         Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category_mask(category);
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_SLICE_BEGIN, .category = category};
  if (!parse_event(&r, "begin", 1, args, count, kwnames))
    return NULL;
  uint32_t written = st_emit(&r, mask);
  struct thread_state* t = st_own.state;
  if (t)
    open_begins_push(begin_track(t, r.track), mask, written);
  Py_RETURN_NONE;
}

PyObject* category_end(PyObject* self, PyObject* const* args, Py_ssize_t count,
                       PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category_mask(category);
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_SLICE_END, .category = category};
  if (!parse_event(&r, "end", 0, args, count, kwnames))
    return NULL;
  struct thread_state* t = thread_state_get();
  if (!t)
    Py_RETURN_NONE;
  uint64_t track = begin_track(t, r.track);
  r.since = st_start_counter;
  uint32_t begun = open_begins_pop(track, mask);
  if (begun)
    st_emit(&r, begun);
  Py_RETURN_NONE;
}

/* Methods with an empty body: the benchmarks compare disabled events with
 * them. */

PyObject* category_empty(PyObject* Py_UNUSED(self),
                         PyObject* const* Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(count),
                         PyObject* Py_UNUSED(kwnames)) {
  Py_RETURN_NONE;
}

PyObject* category_empty_slice(PyObject* Py_UNUSED(self),
                               PyObject* const* Py_UNUSED(args),
                               Py_ssize_t Py_UNUSED(count),
                               PyObject* Py_UNUSED(kwnames)) {
  return Py_NewRef(st_empty_slice);
}

ST_BIND_PART(category_events) {
  (void)module;
  unit_name = PyUnicode_InternFromString("unit");
  return unit_name ? 0 : -1;
}
