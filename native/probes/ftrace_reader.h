/* Ftrace reader: reads the pages of a CPU from its trace_pipe_raw, and converts
 * them to bundles.
 *
 *   do {
 *     more = st_ftrace_read(r, fd, cpu);                  at most a batch
 *     while (st_ftrace_next_bundle(r, &root)) ...
 *   } while (more);
 *
 * A batch is one bundle, unless events were lost or it has many names.
 */
#pragma once

#include "probes/ftrace_bundle.h"

enum { ST_FTRACE_BATCH_PAGES = 32 };

struct st_ftrace_reader {
  struct st_ftrace_table table;
  struct st_ftrace_bundle bundle;
  size_t page_size;
  /* ST_FTRACE_BATCH_PAGES pages. */
  uint8_t* pages;
  uint32_t page_count, next_page;
  uint32_t cpu;
  /* The status of the last read, if it is an error: 0, or to be written. */
  uint8_t read_error;
  /* By CPU: the time of the last event that was written. */
  uint64_t* last_times;
  uint32_t cpu_count;
};

/* Takes over nothing: the table's events and fields must outlive the reader.
 * Returns NULL when out of memory. */
struct st_ftrace_reader* st_ftrace_reader_new(struct st_ftrace_table table,
                                              size_t page_size,
                                              uint32_t cpu_count);
void st_ftrace_reader_free(struct st_ftrace_reader* r);

/* Reads pages of a CPU.  Returns whether more may be there. */
bool st_ftrace_read(struct st_ftrace_reader* r, int fd, uint32_t cpu);
/* Writes the next bundle of what was read.  Returns false if there is none. */
bool st_ftrace_next_bundle(struct st_ftrace_reader* r, struct st_message* root);
