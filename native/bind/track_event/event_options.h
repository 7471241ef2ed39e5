/* The arguments of event calls: `track`, `flow`, `terminating_flow`, `timestamp`
 * and `args` are options, all other keywords are arguments of the event.
 *
 * Nothing is converted here: the request borrows the objects of the call.
 * Wrong options are left out (misuse.h).
 */
#pragma once

#include "bind/track_event/event_request.h"

/* Whether a keyword is an option and not an argument of the event. */
bool is_event_option(PyObject* name);
/* Which option a keyword is; -1: none. */
int find_event_option(PyObject* name);
/* False: the value is wrong and an exception is set, under -X dev. */
bool take_event_option(struct event_request* request, enum event_part option,
                       PyObject* value);

/* Takes the keyword arguments of a call: `skip_names` marks the options among the
 * first 32 names; for later ones st_emit uses is_event_option.  False: as
 * take_event_option. */
bool take_event_keywords(struct event_request* request, PyObject* const* values,
                         PyObject* kwnames);

/* Reports a wrong number of positional arguments, as forgive. */
__attribute__((cold)) bool forgive_count(struct event_request* request,
                                         const char* function,
                                         Py_ssize_t positional,
                                         Py_ssize_t count);

/* Fills the request from a call's arguments.  `positional` of them are expected
 * besides self; the only one is the name (missing: NULL).  False: an exception
 * is set, under -X dev. */
static inline bool parse_event(struct event_request* r, const char* function,
                               Py_ssize_t positional, PyObject* const* args,
                               Py_ssize_t count, PyObject* kwnames) {
  if (UNLIKELY(count != positional) &&
      !forgive_count(r, function, positional, count))
    return false;
  if (positional == 1 && count > 0)
    r->name = args[0];
  return !kwnames || take_event_keywords(r, args + count, kwnames);
}
