/* Builds records of perf events, as the kernel writes them. */
#pragma once

#include <string.h>

#include "check.h"
#include "probes/perf_record.h"
#include "probes/perf_register.h"

struct record_builder {
  uint8_t data[1 << 14];
  size_t size, record;
};

static inline void put_bytes(struct record_builder* b, const void* data,
                             size_t size) {
  CHECK(b->size + size <= sizeof b->data);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static inline void put_u32(struct record_builder* b, uint32_t value) {
  put_bytes(b, &value, sizeof value);
}

static inline void put_u64(struct record_builder* b, uint64_t value) {
  put_bytes(b, &value, sizeof value);
}

static inline void record_begin(struct record_builder* b, uint32_t type,
                                uint16_t misc) {
  b->record = b->size;
  put_u32(b, type);
  put_u32(b, misc);
}

/* Ends a record with the padding to 8 bytes, and stores its size. */
static inline void record_end(struct record_builder* b) {
  while ((b->size - b->record) % 8)
    put_bytes(b, "", 1);
  uint16_t size = (uint16_t)(b->size - b->record);
  memcpy(b->data + b->record + 6, &size, sizeof size);
}

/* Ends a record that is no sample: with its thread and time. */
static inline void record_end_at(struct record_builder* b, uint64_t time) {
  while ((b->size - b->record) % 8)
    put_bytes(b, "", 1);
  put_u32(b, 0);
  put_u32(b, 0);
  put_u64(b, time);
  record_end(b);
}

/* Adds a sample with the count 7 and, unless `stack` is NULL, a stack. */
static inline void put_sample(struct record_builder* b, uint16_t mode,
                              uint32_t pid, uint32_t tid, uint64_t time,
                              const uint64_t* stack, uint32_t depth) {
  record_begin(b, ST_PERF_SAMPLE, mode);
  put_u32(b, pid);
  put_u32(b, tid);
  put_u64(b, time);
  put_u64(b, 1);
  put_u64(b, 7);
  if (stack) {
    put_u64(b, depth);
    put_bytes(b, stack, depth * sizeof *stack);
  }
  record_end(b);
}

/* Adds a sample with registers, and `size` bytes of a stack of which `valid` are
 * there.  Its call chain has one word. */
static inline void put_user_sample(struct record_builder* b, uint32_t pid,
                                   uint64_t time, uint64_t pc, uint64_t sp,
                                   const void* stack, size_t size,
                                   uint64_t valid) {
  enum { SP = ST_PERF_REGISTERS == 17 ? 7 : 31, PC = SP + 1, ABI_64 = 2 };
  record_begin(b, ST_PERF_SAMPLE, 2);
  put_u32(b, pid);
  put_u32(b, pid);
  put_u64(b, time);
  put_u64(b, 1);
  put_u64(b, 7);
  put_u64(b, 1);
  put_u64(b, ST_PERF_KERNEL_MARK);
  put_u64(b, ABI_64);
  for (int i = 0; i < ST_PERF_REGISTERS; i++)
    put_u64(b, i == SP ? sp : i == PC ? pc : 100u + (unsigned)i);
  put_u64(b, size);
  put_bytes(b, stack, size);
  if (size)
    put_u64(b, valid);
  record_end(b);
}

static inline void put_mapping(struct record_builder* b, uint32_t pid,
                               uint64_t address, const char* path,
                               uint64_t time) {
  record_begin(b, ST_PERF_MAPPING, 0);
  put_u32(b, pid);
  put_u32(b, pid);
  put_u64(b, address);
  put_u64(b, 0x1000);
  put_u64(b, 0x2000);
  put_bytes(b, "0123456789012345678901234", 24);
  put_u32(b, 5);
  put_u32(b, 2);
  put_bytes(b, path, strlen(path) + 1);
  record_end_at(b, time);
}

static inline void put_name(struct record_builder* b, uint16_t misc,
                            uint32_t pid, uint32_t tid, const char* name,
                            uint64_t time) {
  record_begin(b, ST_PERF_NAME, misc);
  put_u32(b, pid);
  put_u32(b, tid);
  put_bytes(b, name, strlen(name) + 1);
  record_end_at(b, time);
}

/* Adds a fork or an exit. */
static inline void put_fork(struct record_builder* b, uint32_t type,
                            uint32_t pid, uint32_t parent, uint32_t tid,
                            uint64_t time) {
  record_begin(b, type, 0);
  put_u32(b, pid);
  put_u32(b, parent);
  put_u32(b, tid);
  put_u32(b, parent);
  put_u64(b, time);
  record_end_at(b, time);
}

static inline void put_lost(struct record_builder* b, uint64_t count,
                            uint64_t time) {
  record_begin(b, ST_PERF_LOST, 0);
  put_u64(b, 1);
  put_u64(b, count);
  record_end_at(b, time);
}
