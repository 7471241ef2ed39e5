#include "probes/waiting_thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool st_schedstat_waited_ns(const char* text, uint64_t* ns) {
  char *second, *end;
  strtoull(text, &second, 10);
  *ns = strtoull(second, &end, 10);
  return second != text && end != second;
}

bool st_thread_waited_ns(uint64_t native_id, uint64_t* ns) {
  char text[128];
  /* Each folder of a thread that was opened is one more that the process's
   * parent has to remove from the kernel's cache.  The main thread needs none. */
  if (native_id == (uint64_t)getpid())
    snprintf(text, sizeof text, "/proc/self/schedstat");
  else
    snprintf(text, sizeof text, "/proc/self/task/%llu/schedstat",
             (unsigned long long)native_id);
  int fd = open(text, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  text[size > 0 ? size : 0] = '\0';
  return st_schedstat_waited_ns(text, ns);
}
