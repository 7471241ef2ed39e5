/* Send queue: owns every byte that leaves over one connection.
 *
 * Problem: trace data is sent by whichever thread completes a chunk, control
 * messages by Python; both share one stream socket, whose frames must not
 * interleave, and nobody may block on it.
 *
 *   threads --push--> | half-sent frame | frame | frame | --sendmsg--> socket
 *
 * push() tries to send at once (MSG_DONTWAIT); what the socket doesn't take
 * stays, and the next push or the IPC thread at POLLOUT goes on with it.  The
 * queue is bounded: a frame that doesn't fit is refused whole, and the caller
 * keeps its data (commits stay pending).  A broken connection refuses
 * everything.
 *
 * Frames are Perfetto's: u32 little-endian length, then an IPCFrame.  The
 * queue also owns the request ids, since their order is the order of frames:
 *
 *   IPCFrame { 2 request_id, 5 msg_invoke_method {
 *              1 service_id, 2 method_id, 3 args_proto, 4 drop_reply } }
 *
 * A file descriptor travels with the first byte of its frame (SCM_RIGHTS).
 *
 * Who waits for what: bytes that are left over by a push go out at POLLOUT, so
 * a push that leaves some writes to the wake pipe, if there is one, for the
 * thread that polls (io_thread.h).  Who was refused hears through the room
 * listener, on the thread that drains, once half of the limit is free.
 *
 * Lock: one leaf mutex, held across a non-blocking sendmsg and nothing else.
 * The listener is called without it, under a mutex of its own, so that it is
 * gone for good when st_send_queue_set_room_listener returns.
 *
 * A program that closes every descriptor has closed the socket, too: the queue
 * is broken from then on, and what has its number now gets no byte (own_fd.h).
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
  size_t offset; /* of its frame's first byte, from the queue's head */
  struct st_own_fd fd;
};

typedef void (*st_room_listener)(void* self);

struct st_send_queue {
  struct st_own_fd socket; /* borrowed */
  struct st_fork_entry fork;
  _Atomic bool broken;
  _Atomic uint64_t frames_refused;

  pthread_mutex_t mutex; /* guards all below */
  uint8_t* bytes;        /* bytes[head, tail) are to be sent */
  size_t head, tail, capacity, limit;
  struct st_queued_fd fds[ST_SEND_QUEUE_MAX_FDS];
  unsigned fd_count;
  uint64_t last_request_id;
  const struct st_wake_pipe* wake; /* borrowed, or NULL */
  bool wants_room; /* a frame was refused since the listener was called */

  pthread_mutex_t listener_mutex; /* guards all below */
  st_room_listener listener;
  void* listener_self;
};

/* False: out of memory. */
bool st_send_queue_init(struct st_send_queue* q, int socket, size_t limit);
void st_send_queue_destroy(struct st_send_queue* q);

/* Appends a ready frame (header included) and sends what goes.  fd, if not
 * -1, is duplicated.  False: full or broken; nothing was queued. */
bool st_send_queue_push(struct st_send_queue* q, const void* frame, size_t size,
                        int fd);

/* Builds and pushes an InvokeMethod frame.  Returns its request id, 0 if
 * refused. */
uint64_t st_send_queue_invoke(struct st_send_queue* q, uint32_t service_id,
                              uint32_t method_id, const void* args, size_t size,
                              bool drop_reply, int fd);

/* A fresh request id, for a frame that the caller builds (BindService).
 * The frame must be pushed before any other thread can push: at set-up. */
uint64_t st_send_queue_next_request_id(struct st_send_queue* q);

/* Sends what the socket takes now, and calls the listener if there is room. */
void st_send_queue_drain(struct st_send_queue* q);

/* Bytes that wait; > 0 means: watch for POLLOUT. */
size_t st_send_queue_pending(struct st_send_queue* q);

/* Whether a frame of `size` bytes would be taken now; if not, the listener is
 * called when there is room. */
bool st_send_queue_has_room(struct st_send_queue* q, size_t size);

/* Frees what waits and refuses everything from now on. */
void st_send_queue_break(struct st_send_queue* q);

/* Wakes the thread that polls; NULL for none. */
void st_send_queue_set_wake(struct st_send_queue* q,
                            const struct st_wake_pipe* wake);

/* NULL for none; the queue has one.  Not to be called by the listener. */
void st_send_queue_set_room_listener(struct st_send_queue* q,
                                     st_room_listener listener, void* self);
