/* Shared memory buffers mapped into this process. */
#pragma once

#include "bind/common/python.h"
#include "core/shm_abi.h"

/* Maps `size` bytes of the file `fd`, or private zeroes if `fd` is -1, as a
 * buffer with pages of `page_size` bytes.  Returns false with an exception set
 * on failure. */
bool st_bind_map_shm(int fd, size_t size, size_t page_size, struct st_shm* out);

/* Unmaps a buffer; does nothing for a zero struct. */
void st_bind_unmap_shm(const struct st_shm* shm);

/* The size of a buffer in bytes. */
static inline size_t st_bind_shm_size(const struct st_shm* shm) {
  return (size_t)shm->num_pages * shm->page_size;
}
