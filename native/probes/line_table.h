/* Line table: finds the source line of an instruction in a code object's
 * co_linetable (CPython 3.11 and later, Objects/locations.md).
 *
 * The table is a sequence of entries, in the order of the instructions:
 *
 *   1 cccc lll   c: kind of entry; l: its number of code units (2 bytes) - 1
 *   ...          columns and the change of the line, by kind:
 *
 *   0..9    one byte of columns; the line does not change
 *   10..12  two bytes of columns; the line increases by kind - 10
 *   13      signed varint: change of the line
 *   14      signed varint: change of the line; three varints of columns
 *   15      no line
 *
 * A varint has six bits per byte, the lowest bits first; bit 6 is set if a byte
 * follows.  A signed varint has its sign in bit 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returned for an instruction that has no line, and for a malformed table. */
enum { ST_NO_LINE = 0 };

/* Returns the line of a code unit.  `unit` is its index in the code, from 0;
 * `first_line` is co_firstlineno. */
int32_t st_line_of(const uint8_t* table, size_t size, int32_t first_line,
                   int64_t unit);
