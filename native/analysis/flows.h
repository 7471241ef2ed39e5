/* Flows: links between slices, by flow ids that are unique in a trace. */
#pragma once

#include "args.h"

/* The name of a flow of JSON. */
struct st_flow_name {
  st_string name, category;
};

/* A flow that ends at the next slice of a track. */
struct st_pending_flow {
  uint64_t id;
  uint32_t next; /* The track's next one, or its first one, plus 1. */
};

struct st_flows {
  struct st_storage* storage;
  struct st_arg_sets* arg_sets;
  struct st_map last; /* The last slice of an active flow, plus 1. */
  /* Flows of JSON are numbered by their ids, categories and names. */
  struct st_map by_event;
  ST_ARRAY(struct st_flow_name) names;
  ST_ARRAY(struct st_pending_flow) pending;
  struct st_map pending_by_track; /* The last one, plus 1. */
  uint64_t duplicate_ids, without_slice, steps_without_start,
      ends_without_start, invalid_ids, without_direction;
};

/* Continues a flow in a slice; starts the flow if it isn't active. */
void st_flow_continue(struct st_flows* f, uint64_t id, uint32_t slice);
/* Ends a flow in a slice; ignored if the flow isn't active. */
void st_flow_end(struct st_flows* f, uint64_t id, uint32_t slice);

/* The flows of JSON bind to slices on tracks: `slice` is the topmost one, or
 * ST_NO_ROW. */
uint64_t st_flow_of_event(struct st_flows* f, uint64_t id, st_string category,
                          st_string name);
void st_flow_begin_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
void st_flow_step_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
void st_flow_end_on_track(struct st_flows* f, uint64_t id, uint32_t slice);
/* Ends a flow at the next slice that begins on the track. */
void st_flow_end_at_next(struct st_flows* f, uint64_t id, uint32_t track);
void st_flows_slice_begins(struct st_flows* f, uint32_t track, uint32_t slice);
void st_flows_free(struct st_flows* f);
