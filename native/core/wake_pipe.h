/* Wake pipe: ends the poll of another thread.
 *
 * It is a pair of sockets rather than an eventfd: a socket has an inode of its
 * own, by which own_fd.h recognises it, and send() never writes to a plain
 * file.
 */
#pragma once

#include <sys/socket.h>

#include "high_fd.h"
#include "own_fd.h"

struct st_wake_pipe {
  struct st_own_fd polled;
  struct st_own_fd written;
};

static inline void st_wake_pipe_close(struct st_wake_pipe* p) {
  st_own_fd_close(&p->polled);
  st_own_fd_close(&p->written);
}

/* Opens a wake pipe.  Returns false with errno when out of descriptors. */
static inline bool st_wake_pipe_open(struct st_wake_pipe* p) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return false;
  p->polled = st_own_fd_from(st_move_fd_up(fds[0]));
  p->written = st_own_fd_from(st_move_fd_up(fds[1]));
  return true;
}

/* Wakes the polling thread.  Returns false if the program has closed the pipe's
 * descriptor. */
static inline bool st_wake_pipe_write(const struct st_wake_pipe* p) {
  if (!st_own_fd_is_ours(&p->written))
    return false;
  /* If the pipe is full, the polling thread wakes up anyway. */
  (void)!send(p->written.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

/* Reads all bytes from the pipe, so that the next poll waits again. */
static inline bool st_wake_pipe_read(const struct st_wake_pipe* p) {
  char bytes[64];
  if (!st_own_fd_is_ours(&p->polled))
    return false;
  while (recv(p->polled.fd, bytes, sizeof bytes, MSG_DONTWAIT) ==
         (ssize_t)sizeof bytes) {
  }
  return true;
}
