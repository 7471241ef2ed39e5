/* A batch of pages of a CPU's ring buffer, read from its trace_pipe_raw. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_FTRACE_BATCH_BYTES = 128 << 10 };

struct st_ftrace_batch {
  size_t page_size;
  /* Memory for `max` pages: ST_FTRACE_BATCH_BYTES, or one page. */
  uint8_t* pages;
  uint32_t max;
  uint32_t count; /* The pages that were read last. */
  /* The status of a failed read (ftrace_page.h); else 0. */
  uint8_t error;
};

/* Returns false when out of memory. */
bool st_ftrace_batch_init(struct st_ftrace_batch* b, size_t page_size);
void st_ftrace_batch_free(struct st_ftrace_batch* b);

/* Reads the next pages, and forgets the earlier ones.  Returns whether more may
 * be there. */
bool st_ftrace_batch_read(struct st_ftrace_batch* b, int fd);
