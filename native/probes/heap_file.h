/* Heap file: the totals of a heap profile in shared memory, for another process.
 *
 * The profiled process maps a file and keeps its totals there (heap_profile.h).
 * So a recorder reads them at any time, also after the process has been killed.
 *
 *   0        header: what it is, and how much of each area is used
 *   4096     code: lines of /proc/self/maps (mapped_code.h)
 *   + 1 MiB  totals: struct st_heap_stack, by the number of the stack
 *   ...      stacks: u32 first address, u32 depth; by number
 *   ...      addresses: u64, the innermost call first
 *
 * The file is sparse, and grows in pieces: a piece is written before it is used,
 * because memory of a file system that is full would kill the program (SIGBUS).
 * No file descriptor stays open.
 *
 * Stacks have numbers from 1 on; number 1 has no address, and is that of all
 * stacks that find no room.
 *
 * The reader: `changes` is odd while the totals change.  It copies the totals,
 * and copies them again if `changes` was odd or is another number afterwards.  A
 * process that was killed may leave it odd for ever.
 *
 * Limits: ST_FILE_STACKS stacks and ST_FILE_ADDRESSES addresses.  A process with
 * a limit of the size of its files (RLIMIT_FSIZE) gets no file: it could get a
 * signal.
 *
 * One thread at a time; only the owner writes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/address_table.h"
#include "probes/heap_profile.h"
#include "probes/mapped_code.h"

enum {
  ST_FILE_STACKS = 1 << 16,
  ST_FILE_ADDRESSES = 1 << 21,
  ST_FILE_HEADER = 4096,
  ST_FILE_CODE = 1 << 20,
  ST_FILE_OTHER_STACKS = 1,
  ST_FILE_COMMAND = 1024,
};

#define ST_FILE_MAGIC "STHEAP01"

struct st_heap_file_header {
  char magic[8];
  uint32_t pid, ppid;
  uint64_t start_ns; /* CLOCK_MONOTONIC_COARSE. */
  uint64_t first_interval;
  _Atomic uint64_t changes;
  uint64_t interval;          /* Now, in bytes. */
  uint64_t live, max;         /* Bytes. */
  uint64_t max_change;        /* As in struct st_heap. */
  uint64_t stacks, addresses; /* How many are used. */
  uint64_t code_size;         /* In bytes. */
  uint64_t live_full;         /* Dropped samples, by reason. */
  uint64_t out_of_memory;
  uint64_t other_stacks;         /* Samples whose stack found no room. */
  uint64_t from_startup;         /* 1: since the start of the program. */
  uint64_t command_size;         /* In bytes. */
  char command[ST_FILE_COMMAND]; /* /proc/self/cmdline. */
};

/* The areas that grow. */
enum {
  ST_AREA_CODE,
  ST_AREA_TOTALS,
  ST_AREA_STACKS,
  ST_AREA_ADDRESSES,
  ST_AREAS
};

struct st_heap_file {
  struct st_heap_file_header* header; /* NULL: no file. */
  char path[512];
  uint64_t held[ST_AREAS];         /* How much of each area is written. */
  struct st_address_table by_hash; /* The numbers of stacks. */
  struct st_mapped_code code;
};

/* Creates the file of this process in a folder.  Returns false if that is not
 * possible. */
bool st_heap_file_create(struct st_heap_file* f, const char* folder,
                         uint64_t interval, bool from_startup);
/* Forgets the file, which stays, with its memory: in the child of a fork, which
 * has a copy of the variables. */
void st_heap_file_leave(struct st_heap_file* f);

/* The totals, for st_heap.stacks. */
struct st_heap_stack* st_heap_file_totals(const struct st_heap_file* f);

/* Returns the number of a stack, the innermost call first. */
uint32_t st_heap_file_stack(struct st_heap_file* f, const uint64_t* addresses,
                            uint32_t depth);

/* To be called before and after a change of the totals.  The end copies what the
 * profile has. */
void st_heap_file_begin(struct st_heap_file* f);
void st_heap_file_end(struct st_heap_file* f, const struct st_heap_profile* p,
                      uint64_t interval);
