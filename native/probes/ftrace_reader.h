/* Ftrace reader: reads the pages of a CPU from its trace_pipe_raw, and converts
 * them to bundles.
 *
 *   do {
 *     more = st_ftrace_read(r, fd, cpu);                  at most a batch
 *     while (st_ftrace_next_bundle(r, &root)) ...
 *   } while (more);
 *
 * A batch becomes one bundle.  A further bundle begins where events were lost,
 * and after a page with which the bundle has many names.
 */
#pragma once

#include "probes/ftrace_batch.h"
#include "probes/ftrace_bundle.h"

struct st_ftrace_reader {
  struct st_ftrace_table table;
  struct st_ftrace_bundle bundle;
  /* Its error stays until it is written. */
  struct st_ftrace_batch batch;
  uint32_t next_page;
  uint32_t cpu;
  /* By CPU: the time of the last event that was written. */
  uint64_t* last_times;
  uint32_t cpu_count;
};

/* Creates a reader.  The table's events and fields are not copied: they must
 * exist longer than the reader.  Returns NULL when out of memory. */
struct st_ftrace_reader* st_ftrace_reader_new(struct st_ftrace_table table,
                                              size_t page_size,
                                              uint32_t cpu_count);
void st_ftrace_reader_free(struct st_ftrace_reader* r);

/* Reads a batch of pages of a CPU.  Returns whether more pages may be there. */
bool st_ftrace_read(struct st_ftrace_reader* r, int fd, uint32_t cpu);
/* Writes the next bundle of what was read.  Returns false if there is none. */
bool st_ftrace_next_bundle(struct st_ftrace_reader* r, struct st_message* root);
