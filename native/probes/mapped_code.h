/* Mapped code: where the code of this process is from: files and their places.
 *
 *   /proc/self/maps   7f12a000-7f13c000 r-xp 00028000 fe:01 1234   /lib/libc.so.6
 *                     ^ a line with an x, whose range is new ──> the caller's text
 *
 * The list is read again when an address is in no known range.  A range that is
 * unmapped stays known: a library that is loaded at its place later has its own
 * line only if the range differs.
 *
 * Nothing here allocates memory.  Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_MAX_CODE_RANGES = 2048 };

struct st_mapped_code {
  struct {
    uint64_t start, end;
  } ranges[ST_MAX_CODE_RANGES];
  uint32_t count;
  uint32_t unknown; /* How often an address was in no known range. */
};

/* Whether the address is in a known range.  If not, the list should be read. */
bool st_mapped_code_has(const struct st_mapped_code* c, uint64_t address);

/* Counts an address that is in no known range.  Returns whether the list should
 * be read: ever less often, because code may be in no file. */
bool st_mapped_code_miss(struct st_mapped_code* c);

/* Appends the lines of new ranges to a text of `*size` bytes, as far as there is
 * room.  `path` is that of the list. */
void st_mapped_code_read(struct st_mapped_code* c, const char* path, char* text,
                         uint64_t* size, size_t room);
