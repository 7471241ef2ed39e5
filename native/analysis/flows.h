/* Flows: links between slices, by flow ids that are unique on a machine. */
#pragma once

#include "args.h"

/* The name and category of a flow of a JSON trace. */
struct st_flow_name {
  st_string name, category;
};

/* A slice that names a flow. */
struct st_flow_point {
  uint64_t id;
  uint32_t slice;
};

/* A flow that ends at the next slice of a track. */
struct st_pending_flow {
  uint64_t id;
  /* The number of the track's next pending flow, plus 1.  After the last one
   * comes the first one. */
  uint32_t next;
};

struct st_flows {
  struct st_storage* storage;
  struct st_arg_sets* arg_sets;
  uint32_t machine;   /* The number of the machine in use. */
  struct st_map last; /* By machine: the last slice of an active flow, + 1. */
  /* All calls of st_flow_continue and st_flow_end.  The table flow lacks flows
   * that only one slice names. */
  ST_ARRAY(struct st_flow_point) points;
  /* Flows of a JSON trace have numbers: `by_event` finds a number + 1 by a hash
   * of the id, category and name; `names` has the names by number. */
  struct st_map by_event;
  ST_ARRAY(struct st_flow_name) names;
  ST_ARRAY(struct st_pending_flow) pending;
  struct st_map pending_by_track; /* Track to its last pending flow, plus 1. */
  uint64_t duplicate_ids, without_slice, steps_without_start,
      ends_without_start, invalid_ids, without_direction;
};

/* Continues a flow in a slice; starts the flow if it isn't active. */
void st_flow_continue(struct st_flows* f, uint64_t id, uint32_t slice);
/* Ends a flow in a slice; ignored if the flow isn't active. */
void st_flow_end(struct st_flows* f, uint64_t id, uint32_t slice);

/* These functions are for flows that consist of events of their own, as in JSON
 * and FXT traces.  st_flow_of_event returns the flow id for the id, category and name of
 * an event.  `slice` is the innermost open slice of the event's track; ST_NO_ROW
 * if there is none. */
uint64_t st_flow_of_event(struct st_flows* f, uint64_t id, st_string category,
                          st_string name);
void st_flow_begin_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
void st_flow_step_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
void st_flow_end_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
/* The same as st_flow_end_on_track, but the flow is no longer active. */
void st_flow_close_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
/* Ends a flow at the next slice that begins on the track. */
void st_flow_end_at_next(struct st_flows* f, uint64_t id, uint32_t track);
/* Ends the flows that wait for a slice on the track: `slice` begins now. */
void st_flows_slice_begins(struct st_flows* f, uint32_t track, uint32_t slice);
void st_flows_free(struct st_flows* f);
