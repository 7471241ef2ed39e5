/* A track event while it is parsed: its fields, and where it belongs. */
#pragma once

#include "importer.h"

struct st_parsed_event {
  const struct st_event* event;
  st_string category, name;
  uint32_t categories;
  uint32_t parts; /* event_parts.h */
  uint64_t type, track_uuid, name_iid;
  bool has_track, has_flows, has_terminating, is_thread_track;
  struct st_legacy_event {
    uint64_t phase, scope, bind_id, direction, name_iid;
    uint64_t unscoped_id, global_id, local_id;
    bool has_unscoped_id, has_global_id, has_local_id;
    bool has_bind_id, has_direction, binds_enclosing, has_pid, has_tid;
    int64_t duration_us, pid, tid; /* The ids replace the sequence's. */
    struct st_field id_scope;
  } legacy;
  /* Where the event belongs; ST_NO_ROW if unknown. */
  uint32_t row, utid, upid, passthrough;
  const int64_t* source_id; /* The id of an asynchronous slice, or NULL. */
  struct st_thread_counts counts;
};

/* Finds or adds the row of the event's track: events.c. */
void st_event_find_row(struct st_importer* m, struct st_parsed_event* p,
                       enum st_use use);
/* Begins a slice on the event's row, with the event's arguments and flows; dur
 * is -1 for a begin, 0 for an instant: events.c. */
void st_event_begin_slice(struct st_importer* m, struct st_parsed_event* p,
                          int64_t dur);
/* Ends a slice on the event's row: events.c. */
void st_event_end_slice(struct st_importer* m, struct st_parsed_event* p);

/* Events that have a phase instead of a type: legacy_events.c. */

/* Reads the field legacy_event. */
void st_legacy_read(struct st_legacy_event* l, struct st_field field);
/* Corrects the thread of an event whose phase doesn't belong to a thread.
 * Returns false if a thread or a process is missing. */
bool st_legacy_find_owner(struct st_parsed_event* p);
/* Adds the flow that is given by a bind_id and a direction. */
void st_legacy_add_flow(struct st_importer* m, const struct st_parsed_event* p,
                        uint32_t slice);
void st_legacy_parse(struct st_importer* m, struct st_parsed_event* p);
/* Adds an event as it was written (raw_events.h), if its thread is known; if it
 * isn't, counts an error. */
void st_event_add_raw(struct st_importer* m, const struct st_parsed_event* p);
