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
 * A program may close the socket's descriptor (own_fd.h).  The queue is broken
 * from then on, and sends no byte to another file that gets the same number.
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
  /* The position of the frame's first byte, as an offset from the queue's
   * head. */
  size_t offset;
  struct st_own_fd fd;
};

typedef void (*st_room_listener)(void* self);

struct st_send_queue {
  /* The socket of the connection.  The queue does not close it. */
  struct st_own_fd socket;
  struct st_fork_entry fork;
  /* Whether the connection is broken.  The flag is never cleared, and is set
   * under the mutex.  A thread may read it without the mutex, in relaxed order:
   * if it reads true, it refuses its frame early; if it reads false, it reads
   * the flag again under the mutex. */
  _Atomic bool broken;
  /* The number of refused frames, a statistic that orders no other memory
   * access. */
  _Atomic uint64_t frames_refused;

  /* This mutex guards the members below it, except the listener. */
  pthread_mutex_t mutex;
  /* The queue's memory.  The bytes in [head, tail) have to be sent. */
  uint8_t* bytes;
  size_t head, tail, capacity, limit;
  struct st_queued_fd fds[ST_SEND_QUEUE_MAX_FDS];
  unsigned fd_count;
  uint64_t last_request_id;
  /* The wake pipe of the polling thread, or NULL.  Another object owns it. */
  const struct st_wake_pipe* wake;
  /* Whether the queue has refused a frame since the listener was last
   * called. */
  bool wants_room;

  pthread_mutex_t listener_mutex; /* This mutex guards the room listener. */
  st_room_listener listener;
  void* listener_self;
};

/* Initialises an empty send queue.  Returns false when out of memory. */
bool st_send_queue_init(struct st_send_queue* q, int socket, size_t limit);
void st_send_queue_destroy(struct st_send_queue* q);

/* Appends a complete frame (with its header) and sends as much as the socket
 * takes.  If `fd` is not -1, a duplicate of that descriptor is sent with the
 * frame.  If the queue is full or broken, returns false and queues nothing. */
bool st_send_queue_push(struct st_send_queue* q, const void* frame, size_t size,
                        int fd);

/* Builds an InvokeMethod frame and appends it to the queue.  Returns the
 * frame's request id, or 0 if the queue refused the frame. */
uint64_t st_send_queue_invoke(struct st_send_queue* q, uint32_t service_id,
                              uint32_t method_id, const void* args, size_t size,
                              bool drop_reply, int fd);

/* Returns a new request id, for a frame that the caller builds (BindService).
 * Until the caller has pushed that frame, no other thread may push a frame.  So
 * this function is used only while a connection is set up. */
uint64_t st_send_queue_next_request_id(struct st_send_queue* q);

/* Sends as many pending bytes as the socket takes.  Then calls the room
 * listener if the queue has room. */
void st_send_queue_drain(struct st_send_queue* q);

/* Returns the number of unsent bytes.  If it is not 0, the polling thread has
 * to wait for POLLOUT. */
size_t st_send_queue_pending(struct st_send_queue* q);

/* Returns whether the queue would accept a frame of `size` bytes now.  If not,
 * the queue calls the room listener when there is room. */
bool st_send_queue_has_room(struct st_send_queue* q, size_t size);

/* Sets the wake pipe of the thread that polls the socket.  NULL: no pipe. */
void st_send_queue_set_wake(struct st_send_queue* q,
                            const struct st_wake_pipe* wake);

/* Sets the only room listener of the queue, or removes it (NULL).  The listener
 * must not call this function. */
void st_send_queue_set_room_listener(struct st_send_queue* q,
                                     st_room_listener listener, void* self);
