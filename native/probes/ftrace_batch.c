#include "probes/ftrace_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/ftrace_page.h"

bool st_ftrace_batch_init(struct st_ftrace_batch* b, size_t page_size) {
  *b = (struct st_ftrace_batch){.page_size = page_size};
  b->max = (uint32_t)(ST_FTRACE_BATCH_BYTES / page_size);
  b->max += !b->max;
  b->pages = malloc(page_size * b->max);
  return b->pages;
}

void st_ftrace_batch_free(struct st_ftrace_batch* b) {
  free(b->pages);
}

/* Returns whether an error means that there is no page now: the buffer is
 * empty, another reader uses it, or the CPU is offline. */
static bool means_no_page(int error) {
  return error == EAGAIN || error == EBUSY || error == ENOMEM ||
         error == ENODEV || error == EINTR;
}

static bool is_half_full(const uint8_t* page, size_t size) {
  uint64_t commit;
  memcpy(&commit, page + 8, sizeof commit);
  return (commit & ((1u << 27) - 1)) >= size / 2;
}

bool st_ftrace_batch_read(struct st_ftrace_batch* b, int fd) {
  b->count = b->error = 0;
  while (b->count < b->max) {
    uint8_t* page = b->pages + b->count * b->page_size;
    ssize_t n = read(fd, page, b->page_size);
    if (n <= 0) {
      if (n < 0 && !means_no_page(errno))
        b->error = ST_FTRACE_READ_ERROR;
      return false;
    }
    if ((size_t)n != b->page_size) {
      b->error = ST_FTRACE_PARTIAL_PAGE;
      return false;
    }
    /* A page that is less than half full is the one that the kernel is writing,
     * so the batch ends.  But the first page may be left over from an earlier
     * read. */
    if (b->count++ > 0 && !is_half_full(page, b->page_size))
      return false;
  }
  return true;
}
