/* The Python type Flow: an id that draws arrows between the events that carry it.
 *
 * Ids are unique across processes: a counter, mixed with the uuid of the
 * process's track.  An int is used as it is, for ids that come from elsewhere.
 */
#pragma once

#include "bind/common/bytes_builder.h"

/* Whether the value looks like a flow, or like an iterable of flows.  Runs no
 * Python code: the items of an iterator are checked when it is recorded. */
bool may_be_flows(PyObject* value);

/* Appends fixed64 fields `field` for a Flow, an int, or an iterable of them.
 * May run Python code.  False: an exception is set. */
bool append_flows(struct bytes_builder* out, uint32_t field, PyObject* flows);

/* The id, if `flow` is exactly one Flow or int; else false. */
bool single_flow(PyObject* flow, uint64_t* id);
