/* DWARF cursor: reads the numbers of unwind tables, in a copy of their bytes.
 *
 *   fixed    1 to 8 bytes, the lowest first
 *   LEB128   7 bits per byte, as long as the highest bit is set
 *   address  a byte says its format, and what it is relative to: nothing, the
 *            place of the number itself, or the table
 *
 * A number that goes beyond the end is 0, and makes the cursor bad: it stays at
 * the end, so each loop over a cursor ends.
 *
 * Source: DWARF 5, section 7.6; Linux Standard Base 5, Core, chapter 10.5. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  /* Encodings of addresses. */
  ST_DWARF_FORMAT = 0x0F,
  ST_DWARF_SDATA4 = 0x0B,
  ST_DWARF_DATAREL = 0x30,
  ST_DWARF_OMIT = 0xFF,
};

/* The bytes, and where they are in the memory of their process. */
struct st_dwarf_cursor {
  const uint8_t *at, *end;
  uint64_t address; /* Of `end`. */
  uint64_t header;  /* What ST_DWARF_DATAREL is relative to. */
  bool is_bad;
};

/* Takes a number of 1 to 8 bytes. */
uint64_t st_dwarf_take(struct st_dwarf_cursor* c, size_t size);
int64_t st_dwarf_take_signed(struct st_dwarf_cursor* c, size_t size);
uint64_t st_dwarf_take_uleb(struct st_dwarf_cursor* c);
int64_t st_dwarf_take_sleb(struct st_dwarf_cursor* c);
/* Takes a number whose format an encoding says. */
uint64_t st_dwarf_take_format(struct st_dwarf_cursor* c, uint8_t encoding);
uint64_t st_dwarf_take_address(struct st_dwarf_cursor* c, uint8_t encoding);

/* Passes over bytes.  Returns where they begin; NULL if there are fewer. */
const uint8_t* st_dwarf_pass(struct st_dwarf_cursor* c, uint64_t size);
