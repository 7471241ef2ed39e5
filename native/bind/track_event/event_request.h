/* Event request: the arguments of an event call, not yet converted.
 *
 * All references are borrowed from the call, or from the Slice that keeps its
 * arguments.  Unset members are NULL or 0. Small members are grouped to keep
 * the struct small, because each event zeroes it.
 */
#pragma once

#include "bind/track_event/event_template_object.h"
#include "bind/track_event/track.h"

/* Parts of an event call.  A wrong part is left out of the event.  Options
 * (keyword arguments that are no arguments of the event) come first. */
enum event_part {
  PART_TRACK,
  PART_FLOW,
  PART_TERMINATING_FLOW,
  PART_TIMESTAMP,
  PART_ARGS,
  EVENT_OPTIONS,
  PART_POSITIONAL = EVENT_OPTIONS,
  EVENT_PARTS,
  PART_NONE = EVENT_PARTS, /* wrong, but the event needs no mark */
};

struct event_request {
  enum st_event_type type;
  /* for an END: st_start_counter at its BEGIN. Sessions that started later do
   * not get the END. */
  uint32_t since;
  uint32_t skip_names; /* bit i < 32: name i is an option */
  uint8_t left_out;    /* wrong parts: bits of enum event_part */
  bool has_timestamp;
  bool on_thread_track; /* ignore the task's track, use the thread's */
  CategoryObject* category;
  /* source of category, name and args, or NULL */
  EventTemplateObject* template;
  PyObject* name; /* a str */
  /* instead of `name`: names and locates the event */
  PyObject* code;
  TrackObject* track; /* the track passed by the caller */
  /* instead of `track`: a track that is described elsewhere */
  uint64_t track_uuid;
  uint64_t timestamp;
  PyObject* flow;
  PyObject* terminating_flow;
  PyObject* value; /* value of a counter event */
  PyObject* const* argument_values;
  PyObject* argument_names; /* tuple of str, one for each value */
  PyObject* more_arguments; /* a dict */
  PyObject* within;         /* (context variable, its value inside the slice) */
};
