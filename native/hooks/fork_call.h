/* The call of fork() that has made this process, a child.
 *
 *   parent's frame F   pid = os.fork()
 *   child              the fork handlers, Python functions of threading, random
 *                      and others; then os.fork() returns, and F goes on
 *
 * The handlers are no work of the child: a child that does nothing else needs no
 * connection.  They run as long as F is at the instruction that has called
 * os.fork().
 */
#pragma once

#include <stdbool.h>

/* Notes the calling thread's innermost Python call as F.  Called in the child, by
 * a fork handler that is no Python function.  The caller holds the GIL. */
void st_fork_call_note(void);
/* Whether the calling thread's innermost Python call is one of a fork handler.
 * The caller holds the GIL. */
bool st_fork_call_is_open(void);
