#include "bind/track_event/event_options.h"

#include "bind/track_event/flow.h"
#include "bind/track_event/misuse.h"

/* The names of the options, as interned strings. */
static PyObject* option_names[EVENT_OPTIONS];

int find_event_option(PyObject* name) {
  for (int i = 0; i < EVENT_OPTIONS; i++) {
    if (name == option_names[i])
      return i;
  }
  if (PyUnicode_CHECK_INTERNED(name))
    return -1;
  for (int i = 0; i < EVENT_OPTIONS; i++) {
    if (PyUnicode_Compare(name, option_names[i]) == 0)
      return i;
  }
  return -1;
}

bool is_event_option(PyObject* name) {
  return find_event_option(name) >= 0;
}

static bool take_track(struct event_request* r, PyObject* value) {
  if (value == Py_None)
    return true;
  if (Py_TYPE(value) != st_track_type)
    return report_misuse(r, PART_TRACK, PyExc_TypeError,
                         "track must be a stretto.Track, not %R: make one with "
                         "stretto.Track(name)",
                         (PyObject*)Py_TYPE(value));
  r->track = (TrackObject*)value;
  return true;
}

static bool take_timestamp(struct event_request* r, PyObject* value) {
  if (value == Py_None)
    return true;
  int overflow = 0;
  long long ns =
      PyLong_Check(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : -1;
  if (ns < 0 || overflow)
    return report_misuse(
        r, PART_TIMESTAMP, PyExc_ValueError,
        "timestamp must be an int of nanoseconds of CLOCK_BOOTTIME "
        "(stretto.now()), not %R",
        value);
  r->has_timestamp = true;
  r->timestamp = (uint64_t)ns;
  return true;
}

static bool take_flow(struct event_request* r, enum event_part part,
                      PyObject** flow, PyObject* value) {
  if (value == Py_None)
    return true;
  if (!may_be_flows(value))
    return report_misuse(
        r, part, PyExc_TypeError,
        "%s must be a stretto.Flow, an id or a list of them, not %R",
        st_part_names[part], value);
  *flow = value;
  return true;
}

static bool take_args(struct event_request* r, PyObject* value) {
  if (!PyDict_Check(value))
    return report_misuse(r, PART_ARGS, PyExc_TypeError,
                         "args must be a dict of arguments");
  r->more_arguments = value;
  return true;
}

bool take_event_option(struct event_request* r, enum event_part option,
                       PyObject* value) {
  switch (option) {
    case PART_TRACK:
      return take_track(r, value);
    case PART_TIMESTAMP:
      return take_timestamp(r, value);
    case PART_FLOW:
      return take_flow(r, option, &r->flow, value);
    case PART_TERMINATING_FLOW:
      return take_flow(r, option, &r->terminating_flow, value);
    default:
      return take_args(r, value);
  }
}

bool take_event_keywords(struct event_request* r, PyObject* const* values,
                         PyObject* kwnames) {
  Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
  r->argument_names = kwnames;
  r->argument_values = values;
  for (Py_ssize_t i = 0; i < count; i++) {
    int option = find_event_option(PyTuple_GET_ITEM(kwnames, i));
    if (option < 0)
      continue;
    if (i < 32)
      r->skip_names |= 1u << i;
    if (!take_event_option(r, (enum event_part)option, values[i]))
      return false;
  }
  return true;
}

bool forgive_count(struct event_request* r, const char* function,
                   Py_ssize_t positional, Py_ssize_t count) {
  return report_misuse(r, PART_POSITIONAL, PyExc_TypeError,
                       "%s() takes %zd positional argument%s, got %zd",
                       function, positional, positional == 1 ? "" : "s", count);
}

ST_BIND_PART(event_options) {
  (void)module;
  for (int i = 0; i < EVENT_OPTIONS; i++) {
    option_names[i] = PyUnicode_InternFromString(st_part_names[i]);
    if (!option_names[i])
      return -1;
  }
  return 0;
}
