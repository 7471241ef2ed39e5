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
 * Lock: one leaf mutex, held across a non-blocking sendmsg and nothing else.
 */
#ifndef STRETTO_CORE_SEND_QUEUE_H_
#define STRETTO_CORE_SEND_QUEUE_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_IPC_MAX_FRAME = 131072,      /* including the 4-byte header */
  ST_SEND_QUEUE_CAPACITY = 1 << 20,
  ST_SEND_QUEUE_MAX_FDS = 16,
};

struct st_queued_fd {
  size_t offset; /* of its frame's first byte, from the queue's head */
  int fd;        /* owned */
};

struct st_send_queue {
  int socket; /* borrowed */
  pthread_mutex_t mutex;
  uint8_t* bytes; /* bytes[head, tail) are to be sent */
  size_t head, tail, capacity, limit;
  struct st_queued_fd fds[ST_SEND_QUEUE_MAX_FDS];
  unsigned fd_count;
  uint64_t last_request_id;
  _Atomic bool broken;
  _Atomic uint64_t frames_refused;
};

bool st_send_queue_init(struct st_send_queue* q, int socket, size_t limit);
void st_send_queue_destroy(struct st_send_queue* q);

/* Appends a ready frame (header included) and sends what goes.  fd, if not
 * -1, is duplicated.  False: full or broken; nothing was queued. */
bool st_send_queue_push(struct st_send_queue* q, const void* frame,
                        size_t size, int fd);

/* Builds and pushes an InvokeMethod frame.  Returns its request id, 0 if
 * refused. */
uint64_t st_send_queue_invoke(struct st_send_queue* q, uint32_t service_id,
                              uint32_t method_id, const void* args,
                              size_t size, bool drop_reply, int fd);

/* A fresh request id, for a frame that the caller builds (BindService).
 * The frame must be pushed before any other thread can push: at set-up. */
uint64_t st_send_queue_next_request_id(struct st_send_queue* q);

/* Sends what the socket takes now. */
void st_send_queue_drain(struct st_send_queue* q);

/* Bytes that wait; > 0 means: watch for POLLOUT. */
size_t st_send_queue_pending(struct st_send_queue* q);

#endif /* STRETTO_CORE_SEND_QUEUE_H_ */
