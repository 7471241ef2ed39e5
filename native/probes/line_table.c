#include "probes/line_table.h"

#include <stdbool.h>

enum { KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG, KIND_NONE };

struct reader {
  const uint8_t *at, *end;
  bool is_malformed;
};

static uint8_t byte_of(struct reader* r) {
  if (r->at == r->end) {
    r->is_malformed = true;
    return 0;
  }
  return *r->at++;
}

static uint32_t varint(struct reader* r) {
  uint32_t value = 0;
  for (unsigned shift = 0;; shift += 6) {
    uint8_t byte = byte_of(r);
    if (shift > 30 || r->is_malformed) {
      r->is_malformed = true;
      return 0;
    }
    value |= (uint32_t)(byte & 0x3F) << shift;
    if (!(byte & 0x40))
      return value;
  }
}

static int64_t signed_varint(struct reader* r) {
  uint32_t value = varint(r);
  int64_t magnitude = value >> 1;
  return value & 1 ? -magnitude : magnitude;
}

static void skip_bytes(struct reader* r, int count) {
  while (count--)
    byte_of(r);
}

/* Reads the rest of an entry, after its first byte.  Returns the change of the
 * line. */
static int64_t line_change(struct reader* r, unsigned kind) {
  if (kind < KIND_ONE_LINE) {
    skip_bytes(r, 1);
    return 0;
  }
  if (kind < KIND_NO_COLUMNS) {
    skip_bytes(r, 2);
    return kind - KIND_ONE_LINE;
  }
  if (kind == KIND_NONE)
    return 0;
  int64_t change = signed_varint(r);
  for (int i = 0; kind == KIND_LONG && i < 3; i++)
    varint(r);
  return change;
}

int32_t st_line_of(const uint8_t* table, size_t size, int32_t first_line,
                   int64_t unit) {
  struct reader r = {table, table + size, false};
  int64_t line = first_line, end = 0;
  while (r.at < r.end && unit >= 0) {
    uint8_t head = byte_of(&r);
    unsigned kind = (head >> 3) & 15;
    end += (head & 7) + 1;
    line += line_change(&r, kind);
    bool is_line = line > 0 && line <= INT32_MAX;
    if (r.is_malformed || !(head & 0x80))
      break;
    if (unit < end)
      return kind == KIND_NONE || !is_line ? ST_NO_LINE : (int32_t)line;
  }
  return ST_NO_LINE;
}
