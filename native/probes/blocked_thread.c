#include "probes/blocked_thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

bool st_syscall_text_is_blocked(const char* text,
                                struct st_address_range except) {
  char* end;
  long number = strtol(text, &end, 10);
  if (end == text)
    return false;
  uint64_t address = strtoull(end, NULL, 16);
  return number != SYS_futex || address - except.start >= except.size;
}

bool st_thread_is_blocked(uint64_t native_id, struct st_address_range except) {
  char text[256];
  /* Each folder of a thread that was opened is one more that the process's
   * parent has to remove from the kernel's cache.  The main thread needs none. */
  if (native_id == (uint64_t)getpid())
    snprintf(text, sizeof text, "/proc/self/syscall");
  else
    snprintf(text, sizeof text, "/proc/self/task/%llu/syscall",
             (unsigned long long)native_id);
  int fd = open(text, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  text[size > 0 ? size : 0] = '\0';
  return st_syscall_text_is_blocked(text, except);
}
