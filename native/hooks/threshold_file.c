#include "hooks/threshold_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hooks/tracer.h"

/* The threshold, a number that another process writes.  No other data depends
 * on it, so the order of loads does not matter. */
static const _Atomic uint64_t* threshold_file;

void st_threshold_follow(void) {
  if (!threshold_file)
    return;
  uint64_t ns = atomic_load(threshold_file);
  if (ns > atomic_load(&st_hooks.threshold_ns))
    atomic_store(&st_hooks.threshold_ns, ns);
}

bool st_threshold_use_file(const char* path) {
  if (threshold_file)
    munmap((void*)threshold_file, sizeof *threshold_file);
  threshold_file = NULL;
  if (!path)
    return true;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  void* mapped = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED)
    return false;
  threshold_file = mapped;
  return true;
}
