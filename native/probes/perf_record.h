/* Records of perf events, as the kernel writes them to a ring buffer.
 *
 *   0  u32 type   PERF_RECORD_...
 *   4  u16 misc   bits 0-2 the mode of the CPU; others depend on the type
 *   6  u16 size   of the whole record, a multiple of 8
 *   8  body
 *
 *   sample      u32 pid, tid; u64 time; u64 n, n counts; u64 n, n addresses;
 *               u64 ABI, registers; u64 n, n bytes of the stack, u64 valid bytes
 *   mapping     u32 pid, tid; u64 address, size, offset; 24 bytes of the file's
 *               ids; u32 protection, flags; path
 *   name        u32 pid, tid; name
 *   fork, exit  u32 pid, parent's pid, tid, parent's tid; u64 time
 *   lost        u64 id, u64 count
 *   throttled   u64 time, id, stream id
 *
 * Samples have these members because events are opened with the sample_type
 * TID | TIME | READ and the read_format GROUP.  ST_PERF_CALL_CHAIN and
 * ST_PERF_USER_STACK say whether they have the addresses, and the registers and
 * the stack of the user's program.  All other records end with u32 pid, tid;
 * u64 time (sample_id_all).
 *
 * The registers are those of perf_register.h; there are none (ABI 0) in samples of
 * the kernel's own threads.
 *
 *   struct st_perf_record record;
 *   while (st_perf_record_next(&at, end, members, &record)) ...
 *
 * The bytes are a copy of the ring buffer.  Each size is validated; a record
 * with a wrong size gets the type ST_PERF_DAMAGED.
 *
 * Source: perf_event_open(2), linux/perf_event.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The types of records that are read; their numbers are the kernel's. */
enum st_perf_type {
  ST_PERF_DAMAGED = 0,
  ST_PERF_LOST = 2,
  ST_PERF_NAME = 3,
  ST_PERF_EXIT = 4,
  ST_PERF_THROTTLE = 5,
  ST_PERF_FORK = 7,
  ST_PERF_SAMPLE = 9,
  ST_PERF_MAPPING = 10,
  ST_PERF_LOST_SAMPLES = 13,
};

enum {
  ST_PERF_HEADER = 8,
  ST_PERF_MODE = 7,           /* The bits of `misc` with the CPU's mode. */
  ST_PERF_EXEC = 1 << 13,     /* A name that was given by exec. */
  ST_PERF_MAX_RECORD = 65528, /* A u16 that is a multiple of 8. */
};

/* Which members samples have. */
enum { ST_PERF_CALL_CHAIN = 1, ST_PERF_USER_STACK = 2 };

/* Addresses at or above this one in a stack are marks: the addresses that
 * follow belong to the kernel or to the program. */
#define ST_PERF_FIRST_MARK ((uint64_t)-4095)
#define ST_PERF_KERNEL_MARK ((uint64_t)-128)
#define ST_PERF_USER_MARK ((uint64_t)-512)

struct st_perf_record {
  uint16_t type, misc;
  uint32_t pid, tid;
  uint64_t time;
  /* Sample: the count of the event and of those in its group, and the stack,
   * the innermost address first.  Unaligned; use st_perf_word(). */
  const uint8_t* counts;
  const uint8_t* stack;
  uint32_t count_size, stack_size;
  /* Sample: the registers in user mode, of a program with 64 bits, else NULL; the
   * bytes from its stack pointer on. */
  const uint8_t* registers;
  const uint8_t* memory;
  uint32_t memory_size;
  /* Mapping. */
  uint64_t address, size, offset;
  uint32_t protection;
  /* Mapping and name: without the NUL. */
  const char* text;
  uint32_t text_size;
  /* Fork. */
  uint32_t parent;
  /* Lost: how many records. */
  uint64_t lost;
};

/* Returns the u64 with this index. */
uint64_t st_perf_word(const uint8_t* words, uint32_t index);

/* Reads the record at *at, and moves *at behind it.  Returns false at the end.
 * Damaged: a record whose size is wrong; then *at becomes `end`. */
bool st_perf_record_next(const uint8_t** at, const uint8_t* end,
                         unsigned members, struct st_perf_record* record);
