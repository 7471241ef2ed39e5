/* IPC thread: a native thread that polls one file descriptor, usually a socket.
 *
 * Problem: commands of the service have to be received while the program is
 * busy in one long call, and bytes that the socket did not take have to be sent
 * even if no thread writes another event.
 *
 *   poll( socket: POLLIN while reading, POLLOUT while the queue has bytes
 *         wake:   written by the queue, and by stop )
 *     POLLOUT or wake -> st_send_queue_drain
 *     POLLIN, POLLHUP -> on_readable(self), on this thread
 *
 * While the callback runs the thread does not poll.  After the callback has
 * returned false the thread no longer reads, but still drains.  All signals are
 * blocked on it, so the program's handlers run on the same threads as without
 * tracing.
 *
 * Life cycle: create, start, stop (joins), start again ..., destroy.  Start and
 * stop may be called from any thread but this one.  A destroy within the
 * callback detaches the thread, which then frees everything itself.  A caller
 * must not hold a lock that the callback takes.
 *
 * Without a queue the thread ends when the callback returns false, and a stop
 * joins it.  That serves timers (timerfd): the callback sets the timer again,
 * or returns false.
 *
 * Closed descriptors: a program may close all descriptors that it did not open,
 * including those of this thread.  When the thread detects this, it calls the
 * callback once more.  The callback then detects the loss, and the thread ends.
 * A poll that is already running reports only a close by the socket's peer.  A
 * stop cannot wake such a poll through the pipe, so it cancels the thread.
 * Other files that got the same descriptor numbers are not touched.
 *
 * Fork: stop before, and start after, in each process that needs the thread.
 * Otherwise the child's copy has no thread, and is marked as not running.
 */
#pragma once

#include <stdbool.h>

#include "send_queue.h"

/* The callback that the thread calls when the descriptor is readable.  It
 * returns false to stop reading. */
typedef bool (*st_on_readable)(void* self);

/* An IPC thread.  The members are private to io_thread.c. */
struct st_io_thread;

/* Creates a stopped thread.  It borrows the socket and the queue, which may be
 * NULL. Returns NULL with errno when out of resources. */
struct st_io_thread* st_io_thread_create(int socket,
                                         struct st_send_queue* queue,
                                         st_on_readable on_readable,
                                         void* self);

/* Starts the thread.  Returns 0 if the thread runs, even if it ran before.
 * Otherwise returns an errno. */
int st_io_thread_start(struct st_io_thread* t);

/* Asks the thread to end, and does not wait for it; st_io_thread_stop() must
 * follow. */
void st_io_thread_ask_to_stop(struct st_io_thread* t);

/* Stops and joins the thread if it runs.  Returns EDEADLK if called from the
 * thread itself. */
int st_io_thread_stop(struct st_io_thread* t);

bool st_io_thread_running(struct st_io_thread* t);
void st_io_thread_destroy(struct st_io_thread* t);
