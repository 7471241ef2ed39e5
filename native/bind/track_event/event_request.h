/* What the arguments of an event call say, before anything is converted.
 *
 * Every pointer is borrowed from the call, or from the object that repeats it
 * (a Slice).  Unset is NULL or 0.  Small members stand together: each slice sets
 * all of this to zero.
 */
#pragma once

#include "bind/track_event/event_template_object.h"
#include "bind/track_event/track.h"

/* The parts of an event call, each of which is left out of the event if it is
 * wrong; the options of an event (keyword arguments with a meaning) come first. */
enum event_part {
  PART_TRACK,
  PART_FLOW,
  PART_TERMINATING_FLOW,
  PART_TIMESTAMP,
  PART_ARGS,
  EVENT_OPTIONS,
  PART_POSITIONAL = EVENT_OPTIONS,
  EVENT_PARTS,
  PART_NONE = EVENT_PARTS, /* wrong, but no mark is needed */
};

struct event_request {
  enum st_event_type type;
  uint32_t since; /* of an END: st_start_counter at its BEGIN; a session that
                     started later, while Python ran, gets nothing */
  uint32_t skip_names; /* bit i < 32: name i is one of ours */
  uint8_t left_out;    /* bits of enum event_part that were wrong */
  bool has_timestamp;
  bool on_thread_track; /* instead of a track: the thread's, even in a task */
  CategoryObject* category;
  EventTemplateObject* template; /* where category, name and args come from */
  PyObject* name;                /* str */
  PyObject* code;                /* instead of name: named and located by it */
  TrackObject* track;            /* explicit track */
  uint64_t track_uuid;           /* instead: a track described elsewhere */
  uint64_t timestamp;
  PyObject* flow;
  PyObject* terminating_flow;
  PyObject* value; /* of a counter */
  PyObject* const* argument_values;
  PyObject* argument_names; /* tuple of str, as long as the values used */
  PyObject* more_arguments; /* dict */
  PyObject* within; /* (context variable, its value while the slice is open) */
};
