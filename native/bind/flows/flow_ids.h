/* FlowIds: computes the flow ids of a channel's messages.  Both peers compute
 * the same ids from their own counts; no id is sent.
 *
 * stretto.flows.ids explains the rules; its classes `AnchoredIds` and
 * `NumberedIds` are the models that this type must agree with.
 *
 *   numbered   id = stream(key, number), an answer: stream(mix(id), answer)
 *   anchored   id = stream(key of the direction, anchor << 32 | count)
 *              but a first reply has its request's id */
#pragma once

#include "bind/common/python.h"

/* The same numbers as in stretto.base.rpc_hooks. */
enum message_kind {
  MESSAGE_REQUEST,
  MESSAGE_ONE_WAY,
  MESSAGE_EVENT,
  MESSAGE_REPLY,
  MESSAGE_CONTROL,
  MESSAGE_KINDS,
};

struct flow_direction {
  uint64_t anchor, count;
  bool synchronised;
};

typedef struct {
  PyObject_HEAD
  PyObject* owner;    /* the tracer that this channel state belongs to */
  PyObject* find_key; /* callable that returns an int; 0: key not known yet */
  bool numbered, is_server, disabled;
  /* messages were counted, or may have been lost */
  char used;
  /* keys of the directions; 0: not known yet */
  uint64_t to_server, to_client;
  struct flow_direction directions[2]; /* incoming, outgoing */
} FlowIdsObject;

struct flow_message {
  bool outgoing;
  enum message_kind kind;
  uint64_t txid, answer;
};

extern PyTypeObject* st_flow_ids_type;

/* Returns whether flow_ids_next() would return an id.  Counts nothing. */
bool flow_ids_know(const FlowIdsObject* ids, const struct flow_message* m);
/* Counts a message without computing its id. */
void flow_ids_skip(FlowIdsObject* ids, const struct flow_message* m);
/* Counts a message and returns its id; 0 if the id is not known. */
uint64_t flow_ids_next(FlowIdsObject* ids, const struct flow_message* m);
