/* Event parts: which kinds of fields a track event has.
 *
 * Problem: several parsers read an event, each of them its own fields.  Most
 * events have few kinds of fields; a parser that goes through all fields for
 * nothing costs as much as one that finds something.
 *
 *   fields       type, name_iid, debug_annotations, flow_ids
 *   parts                        ANNOTATIONS      | FLOWS
 *
 * The first pass over the event joins the parts of its fields; each parser runs
 * only if its part is there.
 */
#pragma once

#include <stdint.h>

#include "core/fields.h"

enum {
  ST_PART_FLOWS = 1,
  ST_PART_DETAILS = 2, /* Arguments with code of their own: event_args.c. */
  ST_PART_TYPED = 4,   /* Arguments that schemas name: typed_args.c. */
  ST_PART_ANNOTATIONS = 8,
};

/* Returns the parts that a field of a track event belongs to. */
static inline uint32_t st_parts_of(uint32_t field) {
  enum { FLOWS = ST_PART_FLOWS, DETAILS = ST_PART_DETAILS };
  enum { TYPED = ST_PART_TYPED, FIRST_EXTENSION = 1000 };
  static const uint8_t kParts[64] = {
      [ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS] = ST_PART_ANNOTATIONS,
      [ST_FIELD_TRACK_EVENT_FLOW_IDS] = FLOWS,
      [ST_FIELD_TRACK_EVENT_FLOW_IDS_OLD] = FLOWS,
      [ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS] = FLOWS,
      [ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS_OLD] = FLOWS,
      [ST_FIELD_TRACK_EVENT_TASK_EXECUTION] = DETAILS,
      [ST_FIELD_TRACK_EVENT_LOG_MESSAGE] = DETAILS,
      [ST_FIELD_TRACK_EVENT_CORRELATION_ID] = DETAILS,
      [ST_FIELD_TRACK_EVENT_CORRELATION_ID_STR] = DETAILS,
      [ST_FIELD_TRACK_EVENT_CORRELATION_ID_STR_IID] = DETAILS,
      [ST_FIELD_TRACK_EVENT_SOURCE_LOCATION_IID] = TYPED | DETAILS,
      [ST_FIELD_TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE] = TYPED | DETAILS,
      [ST_FIELD_TRACK_EVENT_CHROME_ACTIVE_PROCESSES] = TYPED | DETAILS,
      [ST_FIELD_TRACK_EVENT_CC_SCHEDULER_STATE] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_USER_EVENT] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_KEYED_SERVICE] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_LEGACY_IPC] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_LATENCY_INFO] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_FRAME_REPORTER] = TYPED,
      [ST_FIELD_TRACK_EVENT_SOURCE_LOCATION] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_MESSAGE_PUMP] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_MOJO_EVENT_INFO] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_APPLICATION_STATE_INFO] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_RENDERER_SCHEDULER_STATE] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_WINDOW_HANDLE_EVENT_INFO] = TYPED,
      [ST_FIELD_TRACK_EVENT_CHROME_CONTENT_SETTINGS_EVENT_INFO] = TYPED,
      [ST_FIELD_TRACK_EVENT_SCREENSHOT] = TYPED,
  };
  if (field < sizeof kParts)
    return kParts[field];
  return field >= FIRST_EXTENSION ? TYPED : 0;
}
