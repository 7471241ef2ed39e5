/* The arguments of event calls: `track`, `flow`, `terminating_flow`,
 * `timestamp` and `args` are options, all other keywords are arguments of the
 * event.
 *
 * These functions convert nothing: the request borrows the objects of the call.
 * Wrong options are left out (misuse.h).
 */
#pragma once

#include "bind/track_event/event_request.h"

/* Returns whether a keyword is an option.  If not, it is an argument of the
 * event. */
bool is_event_option(PyObject* name);
/* Returns the index of the option with this name.  Returns -1 if the keyword is
 * no option. */
int find_event_option(PyObject* name);
/* Stores an option in the request.  Returns false with an exception set if the
 * option's value is wrong and misuse raises (-X dev). */
bool take_event_option(struct event_request* request, enum event_part option,
                       PyObject* value);

/* Stores the keyword arguments of a call in the request.  `skip_names` marks
 * which of the first 32 names are options; st_emit tests later names by
 * is_event_option().  The result is that of take_event_option(). */
bool take_event_keywords(struct event_request* request, PyObject* const* values,
                         PyObject* kwnames);

/* Reports as misuse that a call has a wrong number of positional arguments. */
__attribute__((cold)) bool forgive_count(struct event_request* request,
                                         const char* function,
                                         Py_ssize_t positional,
                                         Py_ssize_t count);

/* Fills the request from a call's arguments.  `positional` is the number of
 * expected positional arguments without self.  If it is 1, the positional
 * argument is the event's name; r->name stays NULL if the caller passes none.
 * Returns false with an exception set if an argument is wrong and misuse raises
 * (-X dev). */
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
