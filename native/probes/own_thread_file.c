#include "probes/own_thread_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool st_read_own_thread_file(uint64_t native_id, const char* name, char* text,
                             size_t size) {
  char path[64];
  if (native_id == (uint64_t)getpid())
    snprintf(path, sizeof path, "/proc/self/%s", name);
  else
    snprintf(path, sizeof path, "/proc/self/task/%llu/%s",
             (unsigned long long)native_id, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t length = read(fd, text, size - 1);
  close(fd);
  text[length > 0 ? length : 0] = '\0';
  return true;
}
