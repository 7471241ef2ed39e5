/* Log messages: the field log_message of an event, from which readers make a
 * table of log records.
 *
 * Messages seldom repeat.  So each message gets a new interning id, and no
 * table of the sequence keeps the message.
 */
#pragma once

#include "bind/track_event/thread_state.h"

struct log_message {
  /* Three borrowed references, each to a str. */
  PyObject *message, *file, *function;
  uint32_t line;
  uint32_t priority; /* The priority, a value of LogMessage.Priority. */
};

/* Appends a log message and its source location to an event.  Runs no Python
 * code. */
void append_log_message(struct thread_state* t, struct thread_sequence* s,
                        const struct log_message* log);
