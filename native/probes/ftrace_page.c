#include "probes/ftrace_page.h"

enum {
  TYPE_DATA = 0,
  TYPE_PADDING = 29,
  TYPE_TIME_EXTEND = 30,
  TYPE_TIME_STAMP = 31,
  TIME_SHIFT = 27
};
static const uint64_t kSizeMask = (1u << 27) - 1;
static const uint64_t kLostEvents = 1u << 31;

void st_ftrace_page_open(struct st_ftrace_page* page, const uint8_t* data,
                         size_t size) {
  uint64_t commit = 0;
  *page = (struct st_ftrace_page){.at = data, .end = data};
  page->status = ST_FTRACE_PAGE_HEADER;
  if (size < ST_FTRACE_PAGE_HEADER_SIZE)
    return;
  memcpy(&page->time, data, sizeof page->time);
  memcpy(&commit, data + 8, sizeof commit);
  if ((commit & kSizeMask) > size - ST_FTRACE_PAGE_HEADER_SIZE)
    return;
  page->lost_events = commit & kLostEvents;
  page->at = data + ST_FTRACE_PAGE_HEADER_SIZE;
  page->end = page->at + (commit & kSizeMask);
  page->status = ST_FTRACE_OK;
}

static bool fail(struct st_ftrace_page* page, uint8_t status) {
  page->status = status;
  page->at = page->end;
  return false;
}

static size_t left(const struct st_ftrace_page* page) {
  return (size_t)(page->end - page->at);
}

/* Reads a u32, and moves behind it.  If the page ends before that, sets the
 * status and returns false. */
static bool take_u32(struct st_ftrace_page* page, uint8_t status,
                     uint32_t* out) {
  if (left(page) < sizeof *out)
    return fail(page, status);
  memcpy(out, page->at, sizeof *out);
  page->at += sizeof *out;
  return true;
}

static bool take_event(struct st_ftrace_page* page, size_t size, uint8_t status,
                       struct st_ftrace_record* record) {
  if (left(page) < size)
    return fail(page, status);
  if (size < ST_FTRACE_EVENT_HEADER_SIZE)
    return fail(page, ST_FTRACE_SHORT_EVENT_ID);
  *record = (struct st_ftrace_record){page->time, page->at, size};
  page->at += size;
  return true;
}

static bool take_long_event(struct st_ftrace_page* page,
                            struct st_ftrace_record* record) {
  uint32_t length;
  if (!take_u32(page, ST_FTRACE_SHORT_LENGTH, &length))
    return false;
  if (length < sizeof length)
    return fail(page, ST_FTRACE_ZERO_LENGTH);
  return take_event(page, length - sizeof length, ST_FTRACE_INVALID_LENGTH,
                    record);
}

static bool skip_padding(struct st_ftrace_page* page, uint32_t delta) {
  uint32_t length;
  if (delta == 0)
    return fail(page, ST_FTRACE_NULL_PADDING);
  if (!take_u32(page, ST_FTRACE_SHORT_PADDING, &length))
    return false;
  if (length < sizeof length || length - sizeof length > left(page))
    return fail(page, ST_FTRACE_INVALID_PADDING);
  page->at += length - sizeof length;
  return true;
}

bool st_ftrace_page_next_of_any(struct st_ftrace_page* page,
                                struct st_ftrace_record* record) {
  uint32_t header, high;
  while (page->at < page->end) {
    if (!take_u32(page, ST_FTRACE_SHORT_HEADER, &header))
      return false;
    uint32_t type = header & 31, delta = header >> 5;
    page->time += delta;
    switch (type) {
      case TYPE_DATA:
        return take_long_event(page, record);
      case TYPE_PADDING:
        if (!skip_padding(page, delta))
          return false;
        break;
      case TYPE_TIME_EXTEND:
        if (!take_u32(page, ST_FTRACE_SHORT_TIME_EXTEND, &high))
          return false;
        page->time += (uint64_t)high << TIME_SHIFT;
        break;
      case TYPE_TIME_STAMP:
        if (!take_u32(page, ST_FTRACE_SHORT_TIME_STAMP, &high))
          return false;
        page->time = ((uint64_t)high << TIME_SHIFT) + delta;
        break;
      default:
        return take_event(page, 4 * (size_t)type, ST_FTRACE_OVERFLOW, record);
    }
  }
  return false;
}
