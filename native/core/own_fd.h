/* Own descriptor: one that is known again after the program may have closed it.
 *
 * Daemons close every number that they don't know.  What they open next may get
 * the number of a descriptor of ours: we must neither write to that file, nor
 * read from it, nor close it.  So each use of such a number asks first whether
 * it still is what it was: same device, same inode.  That costs one fstat,
 * where a send costs several times as much.
 *
 * Only for files that have an inode of their own: sockets, pipes, files.  All
 * eventfds and the like share one.
 *
 * Limit: a thread that closes and opens between the question and the use.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct st_own_fd {
  int fd; /* -1: none */
  dev_t device;
  ino_t inode;
};

#define ST_NO_FD ((struct st_own_fd){.fd = -1})

/* One that isn't open is nobody's. */
static inline struct st_own_fd st_own_fd_from(int fd) {
  struct stat s;
  if (fd < 0 || fstat(fd, &s) != 0)
    return ST_NO_FD;
  return (struct st_own_fd){fd, s.st_dev, s.st_ino};
}

static inline bool st_own_fd_is_ours(const struct st_own_fd* own) {
  struct stat s;
  return own->fd >= 0 && fstat(own->fd, &s) == 0 && s.st_dev == own->device &&
         s.st_ino == own->inode;
}

static inline void st_own_fd_close(struct st_own_fd* own) {
  if (st_own_fd_is_ours(own))
    close(own->fd);
  own->fd = -1;
}
