/* Builds pages of the kernel's ring buffer.  Defines a table of events, by id: 7
 * is plain, with fields of nearly all kinds; 8 is sched_switch; 9 is
 * sched_waking; 10 is generic; 11 has addresses; 12 is generic in the old form;
 * 13 is a text, which may not begin with "no". */
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
    {1, 8, 4, ST_FTRACE_SIGNED, NULL, 0},
    {2, 8, 4, ST_FTRACE_UNSIGNED, NULL, 0},
    {3, 12, 8, ST_FTRACE_CHARS, NULL, 0},
    {4, 20, 4, ST_FTRACE_LOC_STRING, NULL, 0},
    {5, 20, 4, ST_FTRACE_LOC_BYTES, NULL, 0},
    {6, 24, 4, ST_FTRACE_DEVICE, NULL, 0},
    {7, 28, 16, ST_FTRACE_U64_ARRAY, NULL, 0},
    {8, 44, 0, ST_FTRACE_REST, NULL, 0}};
static const struct st_ftrace_field kSwitch[] = {
    {0, 8, 8, ST_FTRACE_SIGNED, NULL, 0},
    {0, 16, 4, ST_FTRACE_SIGNED, NULL, 0},
    {0, 20, 4, ST_FTRACE_SIGNED, NULL, 0},
    {0, 24, 16, ST_FTRACE_CHARS, NULL, 0}};
static const struct st_ftrace_field kWaking[] = {
    {0, 8, 4, ST_FTRACE_SIGNED, NULL, 0},
    {0, 12, 4, ST_FTRACE_SIGNED, NULL, 0},
    {0, 16, 4, ST_FTRACE_SIGNED, NULL, 0},
    {0, 20, 16, ST_FTRACE_CHARS, NULL, 0}};
/* The fields of a work item: what it calls, and its own address. */
static const struct st_ftrace_field kAddresses[] = {
    {1, 8, 8, ST_FTRACE_ADDRESS, NULL, 0},
    {2, 16, 8, ST_FTRACE_ADDRESS, NULL, 0}};
static const struct st_ftrace_field kLabelled[] = {
    {5, 8, 4, ST_FTRACE_UNSIGNED, (const uint8_t*)"\n\1a", 3},
    {3, 12, 4, ST_FTRACE_CHARS, (const uint8_t*)"\n\1b", 3}};
static const struct st_ftrace_field kText[] = {
    {2, 8, 0, ST_FTRACE_REST, NULL, 0}};
static struct st_ftrace_event test_events[] = {
    [7] = {20, ST_FTRACE_PLAIN, 8, kAllKinds, NULL, 0, NULL, 0},
    [8] = {0, ST_FTRACE_COMPACT_SWITCH, 4, kSwitch, NULL, 0, NULL, 0},
    [9] = {0, ST_FTRACE_COMPACT_WAKING, 4, kWaking, NULL, 0, NULL, 0},
    [10] = {65536, ST_FTRACE_PLAIN, 1, kAllKinds, (const uint8_t*)"d", 1, NULL,
            0},
    [11] = {60, ST_FTRACE_PLAIN, 2, kAddresses, NULL, 0, NULL, 0},
    [12] = {327, ST_FTRACE_PLAIN, 2, kLabelled, NULL, 0,
            (const uint8_t*)"\n\1n", 3},
    [13] = {3, ST_FTRACE_PRINT, 1, kText, NULL, 0, NULL, 0}};
static const struct st_print_rule kTestRules[] = {
    {NULL, (const uint8_t*)"no", 0, 2, false}};
static const struct st_ftrace_table kTestTable = {test_events,
                                                  14,
                                                  {kTestRules, 1}};
