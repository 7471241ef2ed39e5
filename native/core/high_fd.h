/* High descriptors: ours stay out of the traced program's way.
 *
 * Programs count on the lowest free number, and daemons close all numbers below
 * some limit, ours among them.  What they open next must not get the number of
 * a descriptor that we still write to: so ours lie where hardly anybody opens.
 */
#pragma once

#include <fcntl.h>
#include <unistd.h>

enum { ST_HIGH_FD = 768 }; /* below the usual limit of 1024 */

/* The descriptor under a high number, or as it is where there is no room. */
static inline int st_move_fd_up(int fd) {
  int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ST_HIGH_FD);
  if (high < 0)
    return fd;
  close(fd);
  return high;
}
