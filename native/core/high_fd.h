/* High file descriptors: moves our descriptors to high numbers.
 *
 * Programs rely on getting the lowest free number, and daemons close all
 * numbers below some limit, ours included.  A file that such a daemon opens
 * next must not get a number that we still write to.  Programs hardly ever use
 * high numbers, so ours are moved there.
 */
#pragma once

#include <fcntl.h>
#include <unistd.h>

/* The lowest "high" descriptor number.  It is below 1024, the usual limit of a
 * process's descriptors. */
enum { ST_HIGH_FD = 768 };

/* Moves the descriptor to a high number.  Returns the new number, or the old
 * one if no high number is free. */
static inline int st_move_fd_up(int fd) {
  int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ST_HIGH_FD);
  if (high < 0)
    return fd;
  close(fd);
  return high;
}
