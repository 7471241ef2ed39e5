/* The Python type Flow: an id that draws arrows between the events that carry
 * it.
 *
 * Ids are unique across processes: a counter, mixed with the uuid of the
 * process's track.  An int is used as the id itself, for ids that another
 * system made.
 */
#pragma once

#include "bind/common/bytes_builder.h"

/* Returns whether the value is a flow, or may be an iterable of flows.  Runs no
 * Python code: the items of an iterable are checked when the event is
 * recorded. */
bool may_be_flows(PyObject* value);

/* Appends a fixed64 field for a Flow or an int.  For an iterable of flows
 * appends one field for each flow.  May run Python code.  Returns false with an
 * exception set on failure. */
bool append_flows(struct bytes_builder* out, uint32_t field, PyObject* flows);

/* Stores the id of `flow` if it is a Flow or an exact int.  Otherwise returns
 * false. */
bool single_flow(PyObject* flow, uint64_t* id);
