/* JSON fields: the members of an event of a JSON trace. */
#pragma once

#include "json_text.h"

/* The id of a flow or asynchronous slice: a number, or a text. */
struct st_json_id {
  bool is_known, is_text;
  uint64_t number;
  struct st_json text;
};

struct st_json_fields {
  /* `scope` is that of an instant: p(rocess), g(lobal), or t(hread). */
  char phase, scope;
  bool has_ts, has_dur, has_tts, has_tdur;
  bool binds_enclosing, flows_in, flows_out;
  int64_t ts, dur;   /* ns */
  int64_t tts, tdur; /* The same in CPU time of the thread. */
  struct st_json pid, tid, name, category, args;
  struct st_json_id id, global_id, local_id, bind_id;
};

/* Reads an event.  Returns false if it is malformed, if it has no phase, or if
 * it has no time and is not a metadata event. */
bool st_json_fields_read(struct st_json_fields* e, const char* text,
                         size_t size);
/* Reads the id of a flow.  Returns false if it is missing or invalid. */
bool st_json_flow_id(struct st_json_id id, uint64_t* number);
