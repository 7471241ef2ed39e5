/* FlowIds: ids that both ends of a channel compute alone.
 *
 * The rules, and their reasons, are in stretto.flows.ids, whose `AnchoredIds`
 * and `NumberedIds` are the models of this.
 *
 *   numbered   id = stream(key, number), an answer's stream(mix(id), answer)
 *   anchored   id = stream(key of the direction, anchor << 32 | count)
 *              but of a first reply: its request's */
#pragma once

#include "bind/common/python.h"

/* As in stretto.base.rpc_hooks. */
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
  PyObject* owner;    /* whose state of a channel this is */
  PyObject* find_key; /* () -> int, 0: not known yet */
  bool numbered, is_server, forsaken;
  char used;                           /* messages went through, or may have */
  uint64_t to_server, to_client;       /* keys; 0: not known yet */
  struct flow_direction directions[2]; /* incoming, outgoing */
} FlowIdsObject;

struct flow_message {
  bool outgoing;
  enum message_kind kind;
  uint64_t txid, answer;
};

extern PyTypeObject* st_flow_ids_type;

/* Whether the id of a message would be known; counts nothing. */
bool flow_ids_know(const FlowIdsObject* ids, const struct flow_message* m);
/* Counts a message that needs no id. */
void flow_ids_skip(FlowIdsObject* ids, const struct flow_message* m);
/* Counts a message; its id, or 0. */
uint64_t flow_ids_next(FlowIdsObject* ids, const struct flow_message* m);
