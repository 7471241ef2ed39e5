/* Builds pages of the kernel's ring buffer.  Defines a table of four events, by
 * id: 7 is plain, with fields of all kinds; 8 is sched_switch; 9 is
 * sched_waking; 10 is generic. */
#pragma once

#include "check.h"
#include "probes/ftrace_bundle.h"

enum { TEST_PAGE = 4096 };

struct page_builder {
  uint8_t data[TEST_PAGE];
  size_t size;
};

static inline void page_begin(struct page_builder* p, uint64_t time) {
  memset(p, 0, sizeof *p);
  memcpy(p->data, &time, sizeof time);
  p->size = ST_FTRACE_PAGE_HEADER_SIZE;
}

static inline void page_put(struct page_builder* p, const void* data,
                            size_t size) {
  CHECK(p->size + size <= TEST_PAGE);
  memcpy(p->data + p->size, data, size);
  p->size += size;
}

static inline void page_u32(struct page_builder* p, uint32_t value) {
  page_put(p, &value, sizeof value);
}

/* Appends an event: its header, and `size` bytes of fields (a multiple of 4). */
static inline void page_event(struct page_builder* p, uint32_t delta,
                              uint16_t id, int32_t pid, const void* fields,
                              size_t size) {
  uint16_t flags = 0x0103;
  page_u32(p, delta << 5 | (uint32_t)(8 + size) / 4);
  page_put(p, &id, sizeof id);
  page_put(p, &flags, sizeof flags);
  page_put(p, &pid, sizeof pid);
  page_put(p, fields, size);
}

/* Ends the page: writes the size of its records, and the flags. */
static inline void page_end(struct page_builder* p, uint64_t flags) {
  uint64_t commit = (p->size - ST_FTRACE_PAGE_HEADER_SIZE) | flags;
  memcpy(p->data + 8, &commit, sizeof commit);
}

static const struct st_ftrace_field kAllKinds[] = {
    {1, 8, 4, ST_FTRACE_SIGNED},      {2, 8, 4, ST_FTRACE_UNSIGNED},
    {3, 12, 8, ST_FTRACE_CHARS},      {4, 20, 4, ST_FTRACE_LOC_STRING},
    {5, 20, 4, ST_FTRACE_LOC_BYTES},  {6, 24, 4, ST_FTRACE_DEVICE},
    {7, 28, 16, ST_FTRACE_U64_ARRAY}, {8, 44, 0, ST_FTRACE_REST}};
static const struct st_ftrace_field kSwitch[] = {{0, 8, 8, ST_FTRACE_SIGNED},
                                                 {0, 16, 4, ST_FTRACE_SIGNED},
                                                 {0, 20, 4, ST_FTRACE_SIGNED},
                                                 {0, 24, 16, ST_FTRACE_CHARS}};
static const struct st_ftrace_field kWaking[] = {{0, 8, 4, ST_FTRACE_SIGNED},
                                                 {0, 12, 4, ST_FTRACE_SIGNED},
                                                 {0, 16, 4, ST_FTRACE_SIGNED},
                                                 {0, 20, 16, ST_FTRACE_CHARS}};
static struct st_ftrace_event test_events[] = {
    [7] = {20, ST_FTRACE_PLAIN, 8, kAllKinds, NULL, 0},
    [8] = {0, ST_FTRACE_COMPACT_SWITCH, 4, kSwitch, NULL, 0},
    [9] = {0, ST_FTRACE_COMPACT_WAKING, 4, kWaking, NULL, 0},
    [10] = {65536, ST_FTRACE_PLAIN, 1, kAllKinds, (const uint8_t*)"d", 1}};
static const struct st_ftrace_table kTestTable = {test_events, 11};
