#include "send_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t pending(const struct st_send_queue* q) {
  return q->tail - q->head;
}

static void close_fds(struct st_send_queue* q) {
  for (unsigned i = 0; i < q->fd_count; i++)
    st_own_fd_close(&q->fds[i].fd);
  q->fd_count = 0;
}

static void clear(struct st_send_queue* q) {
  close_fds(q);
  q->head = q->tail = 0;
}

static void mark_broken(struct st_send_queue* q) {
  clear(q);
  atomic_store(&q->broken, true);
}

/* Makes room for `size` bytes at bytes[tail].  The caller has checked that the
 * limit allows them. */
static bool reserve(struct st_send_queue* q, size_t size) {
  if (q->capacity - q->tail >= size)
    return true;
  if (q->head > 0) {
    memmove(q->bytes, q->bytes + q->head, pending(q));
    q->tail -= q->head;
    q->head = 0;
    if (q->capacity - q->tail >= size)
      return true;
  }
  size_t capacity = q->capacity ? q->capacity : 4096;
  while (capacity - q->tail < size)
    capacity *= 2;
  uint8_t* bytes = realloc(q->bytes, capacity);
  if (!bytes)
    return false;
  q->bytes = bytes;
  q->capacity = capacity;
  return true;
}

static void advance(struct st_send_queue* q, size_t sent) {
  q->head += sent;
  if (q->head == q->tail)
    q->head = q->tail = 0;
  for (unsigned i = 0; i < q->fd_count; i++)
    q->fds[i].offset -= sent;
}

static ssize_t send_bytes(int socket, uint8_t* data, size_t size, int fd) {
  struct iovec iov = {data, size};
  struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)];
  if (fd >= 0) {
    memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void drop_front_fd(struct st_send_queue* q) {
  st_own_fd_close(&q->fds[0].fd);
  q->fd_count--;
  memmove(q->fds, q->fds + 1, q->fd_count * sizeof *q->fds);
}

/* Sends pending bytes up to the next frame that has a file descriptor.  If the
 * first pending frame has one, sends that frame with its descriptor.  Returns
 * false when the socket takes no more bytes. */
static bool send_run(struct st_send_queue* q) {
  unsigned next = q->fd_count > 0 && q->fds[0].offset == 0;
  int fd = next ? q->fds[0].fd.fd : -1;
  size_t size = next < q->fd_count ? q->fds[next].offset : pending(q);

  ssize_t sent = send_bytes(q->socket.fd, q->bytes + q->head, size, fd);
  if (sent < 0) {
    if (errno == EINTR)
      return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      mark_broken(q);
    return false;
  }
  if (fd >= 0)
    drop_front_fd(q);
  advance(q, (size_t)sent);
  return true;
}

/* Checks whether the socket's descriptor still refers to our socket.  This one
 * check is enough: a program that closes descriptors it did not open closes all
 * of ours, which are few and close together. */
static void send_pending(struct st_send_queue* q) {
  if (pending(q) > 0 && !st_own_fd_is_ours(&q->socket))
    mark_broken(q);
  while (pending(q) > 0 && send_run(q)) {
  }
}

static bool has_room_again(const struct st_send_queue* q) {
  return q->wants_room && pending(q) <= q->limit / 2;
}

static void wake_poller(const struct st_send_queue* q) {
  if (q->wake)
    st_wake_pipe_write(q->wake);
}

static bool fits(struct st_send_queue* q, size_t size, int fd) {
  if (atomic_load(&q->broken))
    return false;
  if (fd >= 0 && q->fd_count == ST_SEND_QUEUE_MAX_FDS)
    return false;
  return pending(q) + size <= q->limit;
}

/* Sends pending bytes if the queue has no room for a new frame. */
static bool make_room(struct st_send_queue* q, size_t size, int fd) {
  if (!fits(q, size, fd))
    send_pending(q);
  if (fits(q, size, fd))
    return true;
  q->wants_room = true;
  return false;
}

bool st_send_queue_has_room(struct st_send_queue* q, size_t size) {
  pthread_mutex_lock(&q->mutex);
  bool has_room = make_room(q, size, -1);
  pthread_mutex_unlock(&q->mutex);
  return has_room;
}

/* Returns whether the queue accepts a frame of at most `size` bytes.  Makes
 * room for the frame. */
static bool admit(struct st_send_queue* q, size_t size, int fd) {
  return size <= ST_IPC_MAX_FRAME && make_room(q, size, fd) && reserve(q, size);
}

static bool keep_fd(struct st_send_queue* q, int fd) {
  if (fd < 0)
    return true;
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    return false;
  q->fds[q->fd_count++] =
      (struct st_queued_fd){pending(q), st_own_fd_from(copy)};
  return true;
}

/* Sends the frame that the caller has written at bytes[tail]. */
static void append_and_send(struct st_send_queue* q, size_t size) {
  size_t before = pending(q);
  q->tail += size;
  send_pending(q);
  bool newly_pending = before == 0 && pending(q) > 0;
  if (newly_pending || has_room_again(q))
    wake_poller(q);
}

bool st_send_queue_push(struct st_send_queue* q, const void* frame, size_t size,
                        int fd) {
  pthread_mutex_lock(&q->mutex);
  bool taken = size > 0 && admit(q, size, fd) && keep_fd(q, fd);
  if (taken) {
    memcpy(q->bytes + q->tail, frame, size);
    append_and_send(q, size);
  } else {
    atomic_fetch_add(&q->frames_refused, 1);
  }
  pthread_mutex_unlock(&q->mutex);
  return taken;
}

uint64_t st_send_queue_invoke(struct st_send_queue* q, uint32_t service_id,
                              uint32_t method_id, const void* args, size_t size,
                              bool drop_reply, int fd) {
  struct st_ipc_invoke invoke = {
      .service_id = service_id,
      .method_id = method_id,
      .args = args,
      .args_size = size,
      .drop_reply = drop_reply,
  };
  pthread_mutex_lock(&q->mutex);
  bool taken = size <= ST_IPC_MAX_FRAME - ST_IPC_INVOKE_OVERHEAD &&
               admit(q, size + ST_IPC_INVOKE_OVERHEAD, fd) && keep_fd(q, fd);
  if (taken) {
    invoke.request_id = ++q->last_request_id;
    append_and_send(q, st_ipc_frame_put_invoke(q->bytes + q->tail, &invoke));
  } else {
    atomic_fetch_add(&q->frames_refused, 1);
  }
  pthread_mutex_unlock(&q->mutex);
  return invoke.request_id;
}

uint64_t st_send_queue_next_request_id(struct st_send_queue* q) {
  pthread_mutex_lock(&q->mutex);
  uint64_t id = ++q->last_request_id;
  pthread_mutex_unlock(&q->mutex);
  return id;
}

void st_send_queue_drain(struct st_send_queue* q) {
  pthread_mutex_lock(&q->mutex);
  send_pending(q);
  bool call_listener = has_room_again(q);
  if (call_listener)
    q->wants_room = false;
  pthread_mutex_unlock(&q->mutex);
  if (!call_listener)
    return;

  pthread_mutex_lock(&q->listener_mutex);
  if (q->listener)
    q->listener(q->listener_self);
  pthread_mutex_unlock(&q->listener_mutex);
}

size_t st_send_queue_pending(struct st_send_queue* q) {
  pthread_mutex_lock(&q->mutex);
  size_t size = pending(q);
  pthread_mutex_unlock(&q->mutex);
  return size;
}

void st_send_queue_set_wake(struct st_send_queue* q,
                            const struct st_wake_pipe* wake) {
  pthread_mutex_lock(&q->mutex);
  q->wake = wake;
  pthread_mutex_unlock(&q->mutex);
}

void st_send_queue_set_room_listener(struct st_send_queue* q,
                                     st_room_listener listener, void* self) {
  pthread_mutex_lock(&q->listener_mutex);
  q->listener = listener;
  q->listener_self = self;
  pthread_mutex_unlock(&q->listener_mutex);
}

static void break_in_child(void* self) {
  struct st_send_queue* q = self;
  mark_broken(q);
  q->wake = NULL;
  /* In the child of a fork this mutex may be locked: another thread of the
   * parent may have been calling the listener. */
  pthread_mutex_init(&q->listener_mutex, NULL);
  q->listener = NULL;
}

bool st_send_queue_init(struct st_send_queue* q, int socket, size_t limit) {
  memset(q, 0, sizeof *q);
  q->socket = st_own_fd_from(socket);
  q->limit = limit;
  if (!reserve(q, 1))
    return false;
  pthread_mutex_init(&q->mutex, NULL);
  pthread_mutex_init(&q->listener_mutex, NULL);
  q->fork = (struct st_fork_entry){
      .mutexes = {&q->mutex}, .child = break_in_child, .self = q};
  st_fork_register(&q->fork);
  return true;
}

void st_send_queue_destroy(struct st_send_queue* q) {
  st_fork_unregister(&q->fork);
  close_fds(q);
  free(q->bytes);
  pthread_mutex_destroy(&q->listener_mutex);
  pthread_mutex_destroy(&q->mutex);
}
