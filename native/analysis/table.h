/* Table: append-only columns of typed values, in the layout of Arrow.
 *
 *   ts        | 100 | 140 | 150 | ...     int64
 *   name      |   3 |   7 |   0 | ...     int32, index into the string pool
 *   validity  | 1 1 0 ...                 a bit per row: 0 is NULL
 *
 * A column whose values have all been NULL has no memory.
 *
 * Life cycle: st_table_init with the names and types of the columns,
 * st_table_add with a cell per column, st_table_set to change a cell, free.
 */
#pragma once

#include "string_pool.h"

enum st_type { ST_INT32, ST_INT64, ST_DOUBLE, ST_TEXT };

struct st_column_spec {
  const char* name;
  enum st_type type;
};

struct st_table_spec {
  const char* name;
  uint32_t column_count;
  const struct st_column_spec* columns;
};

struct st_column {
  void* data;        /* NULL while all values are NULL. */
  uint8_t* validity; /* Absent while all values are valid, or all are NULL. */
  uint32_t nulls;
  bool is_shared; /* The memory belongs to the storage. */
};

struct st_table {
  const struct st_table_spec* spec;
  struct st_column* columns;
  uint32_t rows, capacity;
};

struct st_cell {
  bool valid;
  union {
    int64_t i;
    double f;
  };
};

#define ST_NULL ((struct st_cell){0})
static inline struct st_cell st_int(int64_t value) {
  return (struct st_cell){true, {.i = value}};
}
static inline struct st_cell st_real(double value) {
  return (struct st_cell){true, {.f = value}};
}
static inline struct st_cell st_text(st_string id) {
  return (struct st_cell){id != 0, {.i = id}};
}
/* The row number that stands for "no row": its cell is NULL. */
#define ST_NO_ROW UINT32_MAX
static inline struct st_cell st_row(uint32_t row) {
  return (struct st_cell){row != ST_NO_ROW, {.i = row}};
}

void st_table_init(struct st_table* t, const struct st_table_spec* spec);
/* Adds a row.  Returns its number. */
uint32_t st_table_add(struct st_table* t, const struct st_cell* cells);
/* Sets cells[0] to the number of the new row, and adds the row, unless `rows`
 * finds one whose other cells are equal; these must be integers or texts.
 * Returns the row's number. */
uint32_t st_table_intern(struct st_table* t, struct st_map* rows,
                         struct st_cell* cells);
void st_table_set(struct st_table* t, uint32_t row, uint32_t column,
                  struct st_cell cell);
struct st_cell st_table_get(const struct st_table* t, uint32_t row,
                            uint32_t column);
/* Gives columns that have no memory the same one, with zeros for all rows, so
 * that other code can read all columns.  The table can't be changed then. */
void st_table_complete(struct st_table* t, void* zeros);
void st_table_free(struct st_table* t);
