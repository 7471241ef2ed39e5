/* Symbol table: names of functions by address.
 *
 *   addresses | 1000 | 1040 | 2000 | ...    sorted
 *   ends      | 1040 |    0 | 2010 | ...    0: up to the next symbol
 *   names     | offset in `text` of the name, which ends with a NUL
 *
 * Built once: st_symbol_table_add() for each symbol, in any order, then
 * st_symbol_table_sort().  Of several symbols at an address the first one added
 * is found.
 *
 * Limits: ST_MAX_SYMBOLS.  Not thread-safe while it is built.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_MAX_SYMBOLS = 1 << 23 };

struct st_symbol {
  uint64_t address, end;
  uint32_t name;
  uint32_t order;
};

struct st_symbol_table {
  struct st_symbol* symbols;
  size_t count, capacity;
  /* Owned.  The last byte must be a NUL. */
  char* text;
  size_t text_size;
};

/* Adds a symbol of `size` bytes, or up to the next symbol if it is 0.  `name` is
 * the offset of its name.  Returns false if the table is full, or memory is
 * exhausted. */
bool st_symbol_table_add(struct st_symbol_table* t, uint64_t address,
                         uint64_t size, size_t name);
void st_symbol_table_sort(struct st_symbol_table* t);
/* Returns the name of the function at an address; NULL if there is none. */
const char* st_symbol_table_find(const struct st_symbol_table* t,
                                 uint64_t address);
/* Stores the addresses of the functions with a name, and of their parts, whose
 * names have a suffix (name.cold).  Returns how many: at most `room`. */
int st_symbol_table_addresses(const struct st_symbol_table* t, const char* name,
                              uint64_t* addresses, int room);
/* Returns how much memory the table has, in bytes. */
size_t st_symbol_table_memory(const struct st_symbol_table* t);
void st_symbol_table_free(struct st_symbol_table* t);
