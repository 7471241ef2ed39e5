/* Own file descriptor: detects that the program has closed it.
 *
 * Daemons close all descriptors that they did not open.  A file that they open
 * next may get the number of one of ours: we must neither write to that file,
 * nor read from it, nor close it.  So each use of our descriptor first checks
 * that its number still refers to a file with the same device and inode.  That
 * costs one fstat; a send costs several times as much.
 *
 * This works only for files with an inode of their own: sockets, pipes, files.
 * All eventfds, timerfds and so on share one inode.
 *
 * Limit: the check fails to detect a file that another thread opens between the
 * check and the use.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct st_own_fd {
  int fd; /* The number of the file descriptor; -1 if there is none. */
  dev_t device;
  ino_t inode;
};

#define ST_NO_FD ((struct st_own_fd){.fd = -1})

/* Returns a struct with the device and inode of an open descriptor.  Returns
 * ST_NO_FD if the descriptor is not open. */
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
