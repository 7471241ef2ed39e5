/* Maps shared memory buffers into this process. */
#pragma once

#include "bind/common/python.h"
#include "core/shm_abi.h"

/* Maps `size` bytes of the file `fd` as a shared memory buffer with pages of
 * `page_size` bytes.  If `fd` is -1, maps private zeroed memory instead.
 * Returns false with an exception set on failure. */
bool st_bind_map_shm(int fd, size_t size, size_t page_size, struct st_shm* out);

/* Unmaps a shared memory buffer.  Does nothing for a zeroed struct. */
void st_bind_unmap_shm(const struct st_shm* shm);

/* Returns the size of a shared memory buffer in bytes. */
static inline size_t st_bind_shm_size(const struct st_shm* shm) {
  return (size_t)shm->num_pages * shm->page_size;
}
