/* Process memory: reads the memory of another process while it runs.
 *
 * One system call (process_vm_readv) can copy several parts of memory, in
 * order, at nearly the same time.  So a sampler copies all the parts that it
 * expects to need by one call:
 *
 *   fetch     thread state | stack chunk | stack chunk again
 *   read      from these copies, or by a further system call
 *
 * The process is not stopped, and nothing is written to it.  The caller must
 * have the permission to trace it (ptrace(2)): it must be the same user, and
 * Yama must allow it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/stack_reader.h"

enum { ST_PROCESS_MAX_PARTS = 14 };

/* A copy of the memory at [start, start + size).  The caller owns `bytes`. */
struct st_memory_part {
  uint64_t start;
  size_t size;
  uint8_t* bytes;
};

struct st_process_memory {
  int pid;
  /* The number of parts that the last fetch copied completely. */
  int part_count;
  struct st_memory_part parts[ST_PROCESS_MAX_PARTS];
};

/* Copies the parts by one system call.  Returns the number of parts that are
 * complete: the call ends at memory that is not mapped.  The bytes must stay
 * valid until the next fetch. */
int st_process_fetch(struct st_process_memory* process,
                     const struct st_memory_part* parts, int count);

/* Returns a source of memory for the stack reader.  `process` must exist as
 * long as the source. */
struct st_memory st_process_source(struct st_process_memory* process);

/* Copies `size` bytes from an address.  Returns false, with errno set, if this
 * is not possible. */
bool st_process_read(int pid, uint64_t address, void* to, size_t size);
