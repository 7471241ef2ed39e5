/* Send queue: owns every byte that leaves over one connection.
 *
 * Problem: trace data is sent by whichever thread completes a chunk, control
 * messages by Python; both share one stream socket.  Their frames must not
 * interleave, and no thread may block on the socket.
 *
 *   threads --push--> | half-sent frame | frame | frame | --sendmsg--> socket
 *
 * push() tries to send at once (MSG_DONTWAIT). Bytes that the socket does not
 * take stay in the queue, and are sent by the next push, or by the IPC thread
 * at POLLOUT. The queue is bounded: a frame that does not fit is refused as a
 * whole, and the caller keeps its data (commits stay pending). A broken
 * connection refuses all frames.
 *
 * Frames are Perfetto's: u32 little-endian length, then an IPCFrame.  The queue
 * also owns the request ids, since their order is the order of frames:
 *
 *   IPCFrame { 2 request_id, 5 msg_invoke_method {
 *              1 service_id, 2 method_id, 3 args_proto, 4 drop_reply } }
 *
 * A file descriptor travels with the first byte of its frame (SCM_RIGHTS).
 *
 * Wake-ups: a push that leaves bytes in the queue writes to the wake pipe, if
 * there is one, so that the polling thread (io_thread.h) waits for POLLOUT.
 * After a refused frame the draining thread calls the room listener once half
 * of the limit is free.
 *
 * Locks: one leaf mutex, held during non-blocking sendmsg calls at most.  The
 * listener is called without it, under a second mutex, so the old listener is
 * no longer running or called after st_send_queue_set_room_listener returns.
 *
 * A program that closes all descriptors has closed the socket, too.  The queue
 * is broken from then on, and sends no byte to a file that got the number
 * (own_fd.h).
 *
 * Fork: in the child the queue is broken; the socket is the parent's.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fork_guard.h"
#include "ipc_frame.h"
#include "wake_pipe.h"

enum {
  ST_SEND_QUEUE_CAPACITY = 1 << 20,
  ST_SEND_QUEUE_MAX_FDS = 16,
};

struct st_queued_fd {
  /* Position of the frame's first byte, counted from the queue's head. */
  size_t offset;
  struct st_own_fd fd;
};

typedef void (*st_room_listener)(void* self);

struct st_send_queue {
  struct st_own_fd socket; /* The socket, which the queue does not close. */
  struct st_fork_entry fork;
  /* Never cleared, and set under the mutex. Loaded without it to refuse early;
   * who reads false is refused under the mutex, so no order is needed. */
  _Atomic bool broken;
  /* A statistic, which orders nothing. */
  _Atomic uint64_t frames_refused;

  pthread_mutex_t mutex; /* This mutex guards the members below. */
  uint8_t* bytes;        /* Bytes [head, tail) have to be sent. */
  size_t head, tail, capacity, limit;
  struct st_queued_fd fds[ST_SEND_QUEUE_MAX_FDS];
  unsigned fd_count;
  uint64_t last_request_id;
  /* The wake pipe, which belongs to another object, or NULL. */
  const struct st_wake_pipe* wake;
  /* Whether a frame was refused since the last call of the listener. */
  bool wants_room;

  pthread_mutex_t listener_mutex; /* This mutex guards the room listener. */
  st_room_listener listener;
  void* listener_self;
};

/* Initialises an empty queue.  Returns false when out of memory. */
bool st_send_queue_init(struct st_send_queue* q, int socket, size_t limit);
void st_send_queue_destroy(struct st_send_queue* q);

/* Appends a complete frame (with header) and sends as much as the socket takes.
 * `fd` is duplicated, if it is not -1.  If the queue is full or broken, returns
 * false and queues nothing. */
bool st_send_queue_push(struct st_send_queue* q, const void* frame, size_t size,
                        int fd);

/* Builds and pushes an InvokeMethod frame.  Returns its request id, or 0 if the
 * queue refused the frame. */
uint64_t st_send_queue_invoke(struct st_send_queue* q, uint32_t service_id,
                              uint32_t method_id, const void* args, size_t size,
                              bool drop_reply, int fd);

/* Returns a new request id, for a frame that the caller builds (BindService).
 * No other thread may push before the caller has pushed this frame, so it is
 * used only while a connection is set up. */
uint64_t st_send_queue_next_request_id(struct st_send_queue* q);

/* Sends as much as the socket takes, and calls the listener if there is room
 * afterwards. */
void st_send_queue_drain(struct st_send_queue* q);

/* Returns the number of unsent bytes.  Above 0 the poller has to wait for
 * POLLOUT. */
size_t st_send_queue_pending(struct st_send_queue* q);

/* Returns whether a frame of `size` bytes would be accepted now.  If not, the
 * listener is called when there is room. */
bool st_send_queue_has_room(struct st_send_queue* q, size_t size);

/* Sets the pipe that wakes the polling thread; NULL for none. */
void st_send_queue_set_wake(struct st_send_queue* q,
                            const struct st_wake_pipe* wake);

/* Sets the room listener; NULL for none.  A queue has at most one listener.
 * The listener must not call this function. */
void st_send_queue_set_room_listener(struct st_send_queue* q,
                                     st_room_listener listener, void* self);
