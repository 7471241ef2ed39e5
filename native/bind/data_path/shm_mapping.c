#include "bind/data_path/shm_mapping.h"

#include <sys/mman.h>

bool st_bind_map_shm(int fd, size_t size, size_t page_size,
                     struct st_shm* out) {
  int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* memory =
      size ? mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0) : NULL;
  if (memory == MAP_FAILED) {
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
  }
  if (st_shm_init(out, memory, size, page_size))
    return true;
  if (memory)
    munmap(memory, size);
  PyErr_Format(PyExc_ValueError,
               "%zu bytes in pages of %zu are no shared memory buffer: the "
               "page size must be a multiple of 4096 up to 65536, and the "
               "size a multiple of it",
               size, page_size);
  return false;
}

void st_bind_unmap_shm(const struct st_shm* shm) {
  if (shm->start)
    munmap(shm->start, st_bind_shm_size(shm));
}
