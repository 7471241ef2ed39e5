/* Flows: links between slices, by flow ids that are unique in a trace. */
#pragma once

#include "storage.h"

struct st_flows {
  struct st_storage* storage;
  struct st_map last; /* The last slice of an active flow, plus 1. */
};

/* Continues a flow in a slice; starts the flow if it isn't active. */
void st_flow_continue(struct st_flows* f, uint64_t id, uint32_t slice);
/* Ends a flow in a slice; ignored if the flow isn't active. */
void st_flow_end(struct st_flows* f, uint64_t id, uint32_t slice);
void st_flows_free(struct st_flows* f);
