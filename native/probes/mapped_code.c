#include "probes/mapped_code.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINE = 4096 + 128 };

bool st_mapped_code_has(const struct st_mapped_code* c, uint64_t address) {
  for (uint32_t i = 0; i < c->count; i++)
    if (address >= c->ranges[i].start && address < c->ranges[i].end)
      return true;
  return false;
}

bool st_mapped_code_miss(struct st_mapped_code* c) {
  uint32_t n = ++c->unknown;
  return (n & (n - 1)) == 0;
}

static bool is_known(const struct st_mapped_code* c, uint64_t start,
                     uint64_t end) {
  for (uint32_t i = 0; i < c->count; i++)
    if (c->ranges[i].start == start && c->ranges[i].end == end)
      return true;
  return false;
}

/* Whether the line is of executable memory; stores its range. */
static bool parse(const char* line, uint64_t* start, uint64_t* end) {
  char* at;
  *start = strtoull(line, &at, 16);
  if (*at != '-')
    return false;
  *end = strtoull(at + 1, &at, 16);
  return at[0] == ' ' && at[3] == 'x';
}

/* Handles a line of `length` bytes, which end with a newline. */
static void add_line(struct st_mapped_code* c, const char* line, size_t length,
                     char* text, uint64_t* size, size_t room) {
  uint64_t start, end;
  if (!parse(line, &start, &end) || is_known(c, start, end) ||
      c->count == ST_MAX_CODE_RANGES || room - *size < length)
    return;
  memcpy(text + *size, line, length);
  *size += length;
  c->ranges[c->count].start = start;
  c->ranges[c->count++].end = end;
}

void st_mapped_code_read(struct st_mapped_code* c, const char* path, char* text,
                         uint64_t* size, size_t room) {
  char buffer[MAX_LINE + 1];
  size_t filled = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  for (ssize_t got; (got = read(fd, buffer + filled, MAX_LINE - filled)) > 0;) {
    filled += (size_t)got;
    char *line = buffer, *newline;
    buffer[filled] = '\0';
    while ((newline = memchr(line, '\n', filled))) {
      size_t length = (size_t)(newline + 1 - line);
      add_line(c, line, length, text, size, room);
      line += length;
      filled -= length;
    }
    memmove(buffer, line, filled);
  }
  close(fd);
}
