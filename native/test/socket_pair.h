/* A connected pair of stream sockets for tests, with functions to fill and
 * empty it. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

struct socket_pair {
  int ours, theirs;
};

static inline struct socket_pair socket_pair_open(void) {
  int fds[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  /* The kernel raises this buffer size to its minimum.  With pages of 16 KiB
   * the minimum would have room for only a part of a frame of 4 KiB. */
  int small = getpagesize();
  setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  return (struct socket_pair){fds[0], fds[1]};
}

static inline void socket_pair_close(struct socket_pair* p) {
  close(p->ours);
  if (p->theirs >= 0)
    close(p->theirs);
}

/* Receives all available bytes.  *fd becomes the descriptor that came with
 * them, or -1. */
static inline size_t socket_pair_receive(struct socket_pair* p, void* out,
                                         size_t size, int* fd) {
  struct iovec iov = {out, size};
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  struct msghdr m = {.msg_iov = &iov,
                     .msg_iovlen = 1,
                     .msg_control = control,
                     .msg_controllen = sizeof control};
  *fd = -1;
  ssize_t n = recvmsg(p->theirs, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0) {
    CHECK(errno == EAGAIN || errno == EWOULDBLOCK);
    return 0;
  }
  struct cmsghdr* c = CMSG_FIRSTHDR(&m);
  if (c)
    memcpy(fd, CMSG_DATA(c), sizeof *fd);
  return (size_t)n;
}

/* Receives all available bytes, and checks that no descriptors come with
 * them. */
static inline size_t socket_pair_receive_all(struct socket_pair* p,
                                             uint8_t* out, size_t size) {
  size_t total = 0, n;
  int fd;
  while (total < size &&
         (n = socket_pair_receive(p, out + total, size - total, &fd)) > 0) {
    CHECK_EQ(fd, -1);
    total += n;
  }
  return total;
}
