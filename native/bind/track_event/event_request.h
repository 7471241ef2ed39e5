/* Event request: the arguments of an event call, not yet converted.
 *
 * All references are borrowed: from the call, or from a Slice object, which
 * keeps the arguments of its call.  Unset members are NULL or 0. Small members
 * are grouped to keep the struct small, because each event zeroes it.
 */
#pragma once

#include "bind/track_event/event_template_object.h"
#include "bind/track_event/track.h"

/* The parts of an event call.  A wrong part is left out of the event.  The
 * options (keyword arguments that are not written as arguments of the event)
 * come first. */
enum event_part {
  PART_TRACK,
  PART_FLOW,
  PART_TERMINATING_FLOW,
  PART_TIMESTAMP,
  PART_ARGS,
  EVENT_OPTIONS,
  PART_POSITIONAL = EVENT_OPTIONS,
  EVENT_PARTS,
  /* Passed to report_misuse() if no part of the event has to be left out. */
  PART_NONE = EVENT_PARTS,
};

struct event_request {
  enum st_event_type type;
  /* For an END: the value of st_start_counter at the BEGIN.  Sessions that were
   * started later do not get this END. */
  uint32_t since;
  uint32_t skip_names; /* Bit i is set if name i is an option, for i < 32. */
  /* The wrong parts of the call, which the event omits: bits of event_part. */
  uint8_t left_out;
  bool has_timestamp;
  /* Whether the timestamp is known to be in the past. */
  bool is_past;
  /* Whether the event goes to the thread's track, even inside a task. */
  bool on_thread_track;
  CategoryObject* category;
  /* The template that provides category, name and args of the event, or
   * NULL. */
  EventTemplateObject* template;
  PyObject* name; /* The name of the event, a str. */
  /* The code object that provides the location of the event, and also its name
   * if `name` is NULL. */
  PyObject* code;
  /* The log record of the event, or NULL. */
  const struct log_message* log_message;
  /* The track that the caller has passed. */
  TrackObject* track;
  /* The uuid of the event's track if `track` is NULL; 0 if neither is set.  The
   * event does not describe the track of this uuid. */
  uint64_t track_uuid;
  uint64_t timestamp;
  uint64_t thread_time_us; /* The CPU time of the thread; 0 if unknown. */
  PyObject* flow;
  PyObject* terminating_flow;
  PyObject* value; /* The value of a counter event, not yet converted. */
  PyObject* const* argument_values;
  /* The names of the arguments: a tuple with a str for each value. */
  PyObject* argument_names;
  PyObject* more_arguments; /* The dict `args`: further arguments by name. */
  /* The option `within`: a tuple of a context variable and its value inside the
   * slice. */
  PyObject* within;
};
