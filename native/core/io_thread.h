/* IPC thread: a native thread that watches one descriptor, a socket mostly.
 *
 * Problem: commands of the service have to be heard while the program is busy
 * in one long call, and bytes that the socket did not take have to leave even
 * if no thread writes another event.
 *
 *   poll( socket: POLLIN while reading, POLLOUT while the queue has bytes
 *         wake:   written by the queue, and by stop )
 *     POLLOUT or wake -> st_send_queue_drain
 *     POLLIN, POLLHUP -> on_readable(self), on this thread
 *
 * While the callback runs nothing else is polled.  When it returns false the
 * thread reads no more, but goes on to drain.  It has all signals blocked: the
 * program's handlers run where they would without us.
 *
 * Life cycle: create, start, stop (joins), start again ..., destroy.  Start
 * and stop may be called from any thread but this one; destroy from within
 * the callback detaches the thread, which then frees everything itself.  A
 * caller who holds a lock that the callback takes must release it first.
 *
 * Without a queue there is nothing to drain: the thread ends where it would
 * read no more, and a stop joins it.  So a timer may be watched (timerfd): the
 * callback sets it again, or returns false.
 *
 * A program may close every descriptor that it doesn't know, ours too.  A poll
 * that goes on hears of nothing but the socket's peer: the callback is then
 * called once more, to find out, and the thread ends; at its next start, too.
 * A stop can't wake it, and cancels it.  What has their numbers by then is left
 * alone.
 *
 * Fork: stop before, start after, in both processes if need be; where that
 * was not done the child's copy has no thread, and only forgets about it.
 */
#pragma once

#include <stdbool.h>

#include "send_queue.h"

/* False: stop reading. */
typedef bool (*st_on_readable)(void* self);

struct st_io_thread; /* opaque */

/* socket and queue (or NULL) are borrowed.  NULL, with errno, when out of
 * resources. */
struct st_io_thread* st_io_thread_create(int socket,
                                         struct st_send_queue* queue,
                                         st_on_readable on_readable,
                                         void* self);

/* Returns 0, also if it runs already, or an errno. */
int st_io_thread_start(struct st_io_thread* t);

/* Joins the thread if it runs.  EDEADLK: called from the thread itself. */
int st_io_thread_stop(struct st_io_thread* t);

bool st_io_thread_running(struct st_io_thread* t);
void st_io_thread_destroy(struct st_io_thread* t);
