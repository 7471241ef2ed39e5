/* Pages of the kernel's ring buffer, as trace_pipe_raw returns them.
 *
 *   0   u64 time of the page, in ns
 *   8   u64 commit: bits 0-26 bytes of records, bit 31 events were lost before
 *   16  records
 *
 * A record begins with a u32: bits 0-4 its type, bits 5-31 a time delta, which
 * is added to the running time:
 *
 *   1..28  an event of 4 * type bytes
 *   0      u32 length, including its own 4 bytes; an event of length - 4 bytes
 *   29     padding: u32 length, including its own 4 bytes; padding with the
 *          delta 0 ends the page
 *   30     u32 high: the time increases by (high << 27) + delta
 *   31     u32 high: the time becomes (high << 27) + delta
 *
 * An event: u16 id, u8 flags, u8 preempt count, i32 pid; then its fields, at the
 * offsets in its format file.
 *
 *   struct st_ftrace_page page;
 *   struct st_ftrace_record record;
 *   st_ftrace_page_open(&page, data, size);
 *   while (st_ftrace_page_next(&page, &record)) ...
 *   if (page.status != ST_FTRACE_OK) ... the rest of the page is damaged
 *
 * Source: the kernel's files events/header_page and events/header_event, and
 * include/linux/ring_buffer.h.  64-bit kernels only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The values of FtraceParseStatus in the trace. */
enum {
  ST_FTRACE_OK = 1,
  ST_FTRACE_READ_ERROR = 2,
  ST_FTRACE_PARTIAL_PAGE = 3,
  ST_FTRACE_PAGE_HEADER = 4,
  ST_FTRACE_SHORT_HEADER = 5,
  ST_FTRACE_NULL_PADDING = 6,
  ST_FTRACE_SHORT_PADDING = 7,
  ST_FTRACE_INVALID_PADDING = 8,
  ST_FTRACE_SHORT_TIME_EXTEND = 9,
  ST_FTRACE_SHORT_TIME_STAMP = 10,
  ST_FTRACE_SHORT_LENGTH = 11,
  ST_FTRACE_ZERO_LENGTH = 12,
  ST_FTRACE_INVALID_LENGTH = 13,
  ST_FTRACE_SHORT_EVENT_ID = 14,
  ST_FTRACE_OVERFLOW = 15,
  ST_FTRACE_SHORT_COMPACT = 16,
  ST_FTRACE_STATUS_END
};

enum {
  ST_FTRACE_PAGE_HEADER_SIZE = 16,
  ST_FTRACE_EVENT_HEADER_SIZE = 8,
  /* The largest type of a record that is an event of 4 * type bytes. */
  ST_FTRACE_MAX_SHORT_TYPE = 28,
};

struct st_ftrace_page {
  const uint8_t* at;
  const uint8_t* end;
  uint64_t time;
  /* Whether the kernel has overwritten events before this page. */
  bool lost_events;
  uint8_t status;
};

struct st_ftrace_record {
  uint64_t time;
  const uint8_t* data;
  size_t size;
};

static inline uint16_t st_ftrace_event_id(const struct st_ftrace_record* r) {
  uint16_t id;
  memcpy(&id, r->data, sizeof id);
  return id;
}

static inline int32_t st_ftrace_event_pid(const struct st_ftrace_record* r) {
  int32_t pid;
  memcpy(&pid, r->data + 4, sizeof pid);
  return pid;
}

/* Opens a page.  A page with a damaged header has no records, and the status
 * ST_FTRACE_PAGE_HEADER. */
void st_ftrace_page_open(struct st_ftrace_page* page, const uint8_t* data,
                         size_t size);

/* Does the same as st_ftrace_page_next(), for records of all types. */
bool st_ftrace_page_next_of_any(struct st_ftrace_page* page,
                                struct st_ftrace_record* record);

/* Stores the next event in *record.  It has at least
 * ST_FTRACE_EVENT_HEADER_SIZE bytes.  Returns false at the end of the page, or
 * where it is damaged.  Most events are short records; these are read inline. */
static inline bool st_ftrace_page_next(struct st_ftrace_page* page,
                                       struct st_ftrace_record* record) {
  size_t left = (size_t)(page->end - page->at);
  uint32_t header = 0;
  if (left >= sizeof header)
    memcpy(&header, page->at, sizeof header);
  uint32_t type = header & 31;
  size_t size = 4 * (size_t)type;
  if (type < 2 || type > ST_FTRACE_MAX_SHORT_TYPE ||
      left < sizeof header + size)
    return st_ftrace_page_next_of_any(page, record);
  page->time += header >> 5;
  *record =
      (struct st_ftrace_record){page->time, page->at + sizeof header, size};
  page->at += sizeof header + size;
  return true;
}
