/* Cells of an importer's tables, for tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "analysis/storage.h"

/* Returns a number; -99 if the cell is null. */
static inline int64_t get(const struct st_importer* m, uint32_t table,
                          uint32_t row, uint32_t column) {
  struct st_cell cell = st_table_get(&m->storage.tables[table], row, column);
  return cell.valid ? cell.i : -99;
}

/* Returns whether a cell is this text. */
static inline bool is_text(const struct st_importer* m, uint32_t table,
                           uint32_t row, uint32_t column,
                           const char* expected) {
  size_t size;
  const char* text = st_string_text(
      &m->storage.strings, (st_string)get(m, table, row, column), &size);
  return size == strlen(expected) && memcmp(text, expected, size) == 0;
}
