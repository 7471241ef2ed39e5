/* Unwind tables: an .eh_frame_hdr with two functions, in memory of its own. */
#pragma once

#include <string.h>

#include "probes/native_stack.h"

enum {
  TABLES = 0x10000, /* The address of the header. */
  CODE = 0x40000,   /* The first function has 100 bytes; at +200 is one more. */
  STACK = 0x80000,
  STACK_WORDS = 16,
  RETURN_ADDRESS = 16, /* Numbers of registers. */
  SAVED = 6,
  CIE_AT = 64,
  FDE_AT = 128,
  SECOND_FDE_AT = 192,
  TABLES_BYTES = 256,
};

static uint8_t tables[TABLES_BYTES];
static uint64_t stack[STACK_WORDS];

static bool read_fake(void* self, uint64_t address, void* to, size_t size) {
  (void)self;
  if (address >= TABLES && size <= TABLES_BYTES &&
      address - TABLES <= TABLES_BYTES - size)
    memcpy(to, tables + (address - TABLES), size);
  else if (address >= STACK && size <= sizeof stack &&
           address - STACK <= sizeof stack - size)
    memcpy(to, (uint8_t*)stack + (address - STACK), size);
  else
    return false;
  return true;
}

static const struct st_memory kMemory = {.read = read_fake};
static const struct st_code_range kCode = {CODE, CODE + 1000, TABLES};

static void put32(size_t at, uint32_t value) {
  memcpy(tables + at, &value, sizeof value);
}

/* Writes an entry that fills 64 bytes: no operations are at its end. */
static void put_entry(size_t at, uint32_t id, const char* bytes, size_t size) {
  put32(at, 60);
  put32(at + 4, id);
  memcpy(tables + at + 8, bytes, size);
}

static void put_function(size_t at, uint32_t code, const char* instructions,
                         size_t size) {
  char bytes[56] = {0};
  uint32_t begin = code - (uint32_t)(TABLES + at + 8), length = 100;
  memcpy(bytes, &begin, 4);
  memcpy(bytes + 4, &length, 4);
  memcpy(bytes + 9, instructions, size); /* After the size of further data. */
  put_entry(at, (uint32_t)(at + 4 - CIE_AT), bytes, sizeof bytes);
}

/* Writes the tables.  At its entry, a function has its return address on top of
 * the stack. */
static void make_tables(const char* instructions, size_t size) {
  static const char kFactors[] = "\1zR\0\1\x78\x10\1\x1B";
  char cie[32] = {0};
  memset(tables, 0, sizeof tables);
  memcpy(tables, "\1\x1B\3\x3B", 4);
  put32(8, 2);
  put32(12, CODE - TABLES);
  put32(16, FDE_AT);
  put32(20, CODE + 200 - TABLES);
  put32(24, SECOND_FDE_AT);
  memcpy(cie, kFactors, sizeof kFactors - 1);
  /* def_cfa(sp, 8), offset(return address, 1) */
  memcpy(
      cie + sizeof kFactors - 1,
      (const char[]){0x0C, ST_UNWIND_SP, 8, (char)(0x80 | RETURN_ADDRESS), 1},
      5);
  put_entry(CIE_AT, 0, cie, sizeof cie);
  put_function(FDE_AT, CODE, instructions, size);
  /* undefined(return address): there is no caller. */
  put_function(SECOND_FDE_AT, CODE + 200, (const char[]){0x07, RETURN_ADDRESS},
               2);
}

/* Adds a letter to what the functions share: their callers were interrupted. */
static inline void mark_signal_frames(void) {
  uint8_t* letters = tables + CIE_AT + 9;
  memmove(letters + 3, letters + 2, 24);
  letters[2] = 'S';
}
