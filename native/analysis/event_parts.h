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

#include <stdbool.h>
#include <stdint.h>

#include "core/fields.h"

enum {
  ST_PART_FLOWS = 1,
  ST_PART_DETAILS = 2, /* Arguments with code of their own: event_args.c. */
  ST_PART_TYPED = 4,   /* Arguments that schemas name: typed_args.c. */
  ST_PART_ANNOTATIONS = 8,
};

/* Returns whether a field of a track event is an argument of its slice, which
 * is named by the schema of the event. */
static inline bool st_is_typed_argument(uint32_t field) {
  return (field >= 24 && field <= 29) || (field >= 32 && field <= 35) ||
         (field >= 38 && field <= 41) || field == 43 || field == 49 ||
         field == 50 || field >= 1000;
}

/* Returns the parts that a field of a track event belongs to. */
static inline uint32_t st_parts_of(uint32_t field) {
  uint32_t typed = st_is_typed_argument(field) ? ST_PART_TYPED : 0;
  switch (field) {
    case ST_FIELD_TRACK_EVENT_FLOW_IDS:
    case ST_FIELD_TRACK_EVENT_FLOW_IDS_OLD:
    case ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS:
    case ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS_OLD:
      return typed | ST_PART_FLOWS;
    case ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS:
      return typed | ST_PART_ANNOTATIONS;
    case ST_FIELD_TRACK_EVENT_SOURCE_LOCATION_IID:
    case ST_FIELD_TRACK_EVENT_TASK_EXECUTION:
    case ST_FIELD_TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE:
    case ST_FIELD_TRACK_EVENT_CHROME_ACTIVE_PROCESSES:
    case ST_FIELD_TRACK_EVENT_LOG_MESSAGE:
    case ST_FIELD_TRACK_EVENT_CORRELATION_ID:
    case ST_FIELD_TRACK_EVENT_CORRELATION_ID_STR:
    case ST_FIELD_TRACK_EVENT_CORRELATION_ID_STR_IID:
      return typed | ST_PART_DETAILS;
    default:
      return typed;
  }
}
