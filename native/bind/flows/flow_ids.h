/* FlowIds: computes the flow ids of a channel's messages.  Both peers compute
 * the same ids from their own counts; no id is sent.
 *
 * stretto.flows.ids explains the rules; its classes `AnchoredIds` and
 * `NumberedIds` are the models that this type must agree with.
 *
 *   numbered   id = stream(key, number)
 *              id of an answer = stream(mix(id), answer)
 *   anchored   id = stream(key of the direction, anchor << 32 | count)
 *              id of a first reply = id of its request */
#pragma once

#include "bind/common/python.h"

/* Kinds of messages.  The numbers are the same as in stretto.base.rpc_hooks. */
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
  /* The message tracer that made this object for a channel. */
  PyObject* owner;
  /* A Python callable that returns the channel's key as an int, or 0. */
  PyObject* find_key;
  bool numbered, is_server, disabled;
  /* Whether the channel has, or may have, transported messages. */
  char used;
  /* The keys of the two directions of the channel; 0 if not known yet. */
  uint64_t to_server, to_client;
  /* The state of each direction: incoming messages, then outgoing messages. */
  struct flow_direction directions[2];
} FlowIdsObject;

struct flow_message {
  bool outgoing;
  enum message_kind kind;
  uint64_t txid, answer;
};

extern PyTypeObject* st_flow_ids_type;

/* Returns whether flow_ids_next() would return an id for this message.  Does
 * not count the message. */
bool flow_ids_know(const FlowIdsObject* ids, const struct flow_message* m);
/* Counts a message without computing its flow id. */
void flow_ids_skip(FlowIdsObject* ids, const struct flow_message* m);
/* Counts a message and returns its flow id; 0 if the id is not known. */
uint64_t flow_ids_next(FlowIdsObject* ids, const struct flow_message* m);
