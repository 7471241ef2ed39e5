/* Event request: the arguments of an event call, not yet converted.
 *
 * All references are borrowed from the call, or from the Slice that keeps its
 * arguments.  Unset members are NULL or 0. Small members are grouped to keep
 * the struct small, because each event zeroes it.
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
  /* A wrong part for which the event needs no mark. */
  PART_NONE = EVENT_PARTS,
};

struct event_request {
  enum st_event_type type;
  /* In an END: st_start_counter at its BEGIN.  Sessions that started later do
   * not get the END. */
  uint32_t since;
  uint32_t skip_names; /* Bit i < 32: name i is an option. */
  uint8_t left_out;    /* Wrong parts, as bits of enum event_part. */
  bool has_timestamp;
  /* Whether to use the thread's track, even inside a task. */
  bool on_thread_track;
  CategoryObject* category;
  /* The template that provides category, name and args, or NULL. */
  EventTemplateObject* template;
  PyObject* name; /* The event's name, a str. */
  /* A code object that names and locates the event, instead of `name`. */
  PyObject* code;
  const struct log_message* log_message; /* A log record, or NULL. */
  TrackObject* track;                    /* The track passed by the caller. */
  /* The uuid of a track that is described elsewhere, instead of `track`. */
  uint64_t track_uuid;
  uint64_t timestamp;
  PyObject* flow;
  PyObject* terminating_flow;
  PyObject* value; /* The value of a counter event. */
  PyObject* const* argument_values;
  PyObject* argument_names; /* A tuple of str, one for each value. */
  PyObject* more_arguments; /* More arguments, a dict. */
  /* The tuple (context variable, its value in the slice). */
  PyObject* within;
};
