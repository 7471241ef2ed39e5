/* Perf sampler: turns the records of all CPUs into packets with PerfSample.
 *
 *   rings --st_perf_sampler_read()--> records, sorted by time
 *         --st_perf_sampler_next()--> packets
 *
 * A sampler has no names: it numbers stacks and frames (stack_table.h), and its
 * owner names them.  Wherever it needs the owner, st_perf_sampler_next() stops
 * and says why:
 *
 *   ST_PERF_NEW_THREAD  the first sample of a thread, or after exec.  The owner
 *                       describes it, and calls st_perf_sampler_decide() for its
 *                       process
 *   ST_PERF_NEW_CODE    unwinding has come to an unknown address, `missing`: the
 *                       owner says by st_perf_sampler_add_code() which file is
 *                       there; if none is, the stack ends
 *   ST_PERF_NEW_FRAMES  a stack has unknown addresses: the owner numbers each
 *                       by st_perf_sampler_add_frame()
 *   ST_PERF_CHANGE      a process was forked, renamed, mapped a file, or ended
 *   ST_PERF_KERNEL_LOSS the kernel has dropped records, or pauses the event
 *   ST_PERF_DONE        all records are handled
 *
 * The next call goes on with the same sample.  So the owner sees the records of
 * all CPUs in the order of their times, and an address belongs to what was
 * mapped at that time.
 *
 * Address spaces: a user address has a meaning within a process, until the
 * process maps something else there.  Each process has the number of a space,
 * which changes by st_perf_sampler_renew(); the kernel is space 0.  Return
 * addresses are reduced by 1, so that they belong to the call.
 *
 * Frames of programs are those that the kernel has found by frame pointers; or,
 * with ST_PERF_USER_STACK, those that perf_unwinder.h finds.
 *
 * Packets: the timestamp is in the event's clock; they need the sequence's
 * incremental state.  Samples that have no stack because of the process or of a
 * limit say so in sample_skipped_reason.  Stacks whose outermost calls were not
 * found say why in unwind_error.
 *
 * Limits: the bytes of a read (`capacity`), and the samples of a CPU per read;
 * the rest stays in the rings.  ST_PERF_MAX_DEPTH addresses of a stack are kept,
 * the innermost.  One thread at a time uses a sampler.
 */
#pragma once

#include "core/message.h"
#include "probes/address_table.h"
#include "probes/perf_record.h"
#include "probes/perf_ring.h"
#include "probes/perf_unwinder.h"
#include "probes/stack_table.h"

enum {
  ST_PERF_MAX_CPUS = 4096,
  ST_PERF_MAX_DEPTH = 512,
  ST_PERF_KERNEL_SPACE = 0,
};

enum st_perf_stop {
  ST_PERF_DONE = 0,
  ST_PERF_NEW_THREAD,
  ST_PERF_NEW_CODE,
  ST_PERF_NEW_FRAMES,
  ST_PERF_CHANGE,
  ST_PERF_KERNEL_LOSS,
  ST_PERF_PACKET, /* A packet was written. */
};

struct st_perf_cpu {
  struct st_perf_ring ring;
  uint32_t cpu;
};

struct st_perf_entry {
  uint64_t time;
  const uint8_t* at;
  uint32_t size, cpu;
};

struct st_perf_frame_key {
  uint64_t space, address;
};

struct st_perf_sampler {
  struct st_perf_cpu* cpus;
  uint32_t cpu_count;
  unsigned members; /* Which samples have. */
  /* Samples without frames of the user's programs: what ran in user mode has no
   * stack. */
  bool kernel_only;
  uint32_t max_samples;
  uint64_t max_stack_bytes; /* Of the stacks of one read; 0: no limit. */

  /* The copied records. */
  uint8_t* records;
  size_t capacity, size;
  struct st_perf_entry* entries;
  size_t entry_count, entry_capacity, next;
  uint64_t stack_bytes;

  /* The record where st_perf_sampler_next() has stopped. */
  struct st_perf_record record;
  uint32_t cpu;
  /* The question about this record that the owner was asked last. */
  enum st_perf_stop asked;
  struct st_perf_frame_key unknown[ST_PERF_MAX_DEPTH];
  uint32_t unknown_count;

  /* With ST_PERF_USER_STACK: the stack of the sample, instead of the record's own,
   * and what was said of it. */
  struct st_perf_unwinder* unwinder;
  uint64_t unwound[2 * ST_PERF_MAX_DEPTH];
  uint64_t missing;
  uint32_t unwind_error;

  struct st_stack_table* table;
  /* By pid + 1: space << 1 | in scope.  By tid + 1: the pid. */
  struct st_address_table processes, threads;
  uint64_t last_space;
  uint64_t damaged, skipped;
};

/* Returns NULL when out of memory. */
struct st_perf_sampler* st_perf_sampler_create(uint32_t cpu_count,
                                               unsigned members,
                                               size_t capacity,
                                               uint32_t max_samples);
/* Unmaps the rings.  The events' descriptors stay the owner's. */
void st_perf_sampler_destroy(struct st_perf_sampler* s);

/* Copies the records of all rings.  All records of the last read must have been
 * handled.  Returns whether rings have more records. */
bool st_perf_sampler_read(struct st_perf_sampler* s);
/* Adds bytes as the records of a CPU: what st_perf_sampler_read() does for each
 * ring.  They must stay until the next read. */
void st_perf_sampler_add_records(struct st_perf_sampler* s, uint32_t cpu,
                                 const uint8_t* records, size_t size);
void st_perf_sampler_sort(struct st_perf_sampler* s);

/* Handles records up to the next one that the owner must see.  After
 * ST_PERF_PACKET, the root has the fields of a TracePacket. */
enum st_perf_stop st_perf_sampler_next(struct st_perf_sampler* s,
                                       struct st_message* root);

/* Says which file has the code around `missing`.  Its space is that of the record's
 * process.  The file must exist until st_perf_sampler_clear_code(). */
void st_perf_sampler_add_code(struct st_perf_sampler* s, uint64_t start,
                              uint64_t end, uint64_t bias,
                              const struct st_elf_file* file);
void st_perf_sampler_clear_code(struct st_perf_sampler* s);

/* Stores whether samples of a process are wanted.  A process that was undecided
 * gets a new space. */
void st_perf_sampler_decide(struct st_perf_sampler* s, uint32_t pid,
                            bool in_scope);
/* Gives a process a new space, because its mappings have changed. */
void st_perf_sampler_renew(struct st_perf_sampler* s, uint32_t pid);
/* Numbers an address.  `key` names the frame; equal keys have one number.
 * Returns 0 if the table is full. */
uint32_t st_perf_sampler_add_frame(struct st_perf_sampler* s, uint64_t space,
                                   uint64_t address, uint64_t key);
/* Forgets all frames and stacks, so that numbers start at 1 again. */
void st_perf_sampler_clear(struct st_perf_sampler* s);
