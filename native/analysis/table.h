/* Table: append-only columns of typed values, in segments (segment.h).
 *
 *              rows 0 to 4,095       rows 4,096 to ...
 *   id         -                     -
 *   ts         segment               segment
 *   name       segment               segment       indexes into the string pool
 *
 * A column of the type ST_ROW has the numbers of the rows, which are not stored.
 * A column of the type ST_DOUBLE keeps codes (st_real_code): most counters have
 * whole values, and their codes are close to each other.
 * Segments are freed only with the table, and full ones are never moved: a
 * table takes up the memory that the sorter frees.
 *
 * Life cycle: st_table_init with the names and types of the columns,
 * st_table_add with a cell per column, st_table_set to change a cell, free.
 */
#pragma once

#include <string.h>

#include "segment.h"
#include "string_pool.h"

enum st_type { ST_ROW, ST_INT32, ST_INT64, ST_DOUBLE, ST_TEXT };

struct st_column_spec {
  const char* name;
  enum st_type type;
};

struct st_table_spec {
  const char* name;
  uint32_t column_count;
  const struct st_column_spec* columns;
};

struct st_table {
  const struct st_table_spec* spec;
  /* The segments of all columns for the first rows, then for the next ones. */
  ST_ARRAY(struct st_segment) segments;
  uint32_t rows, capacity;
};

struct st_cell {
  bool valid;
  union {
    int64_t i;
    double f;
  };
};

/* Returns the code of the bits of a double, or the bits of a code.  A double
 * that is a whole number n of less than 2^52 and the double with the bits n
 * change places; the code of any other double is its bits. */
static inline int64_t st_real_code(int64_t bits) {
  const int64_t limit = (int64_t)1 << 52;
  double real, whole;
  int64_t whole_bits;
  memcpy(&real, &bits, sizeof real);
  if (real > -(double)limit && real < (double)limit) {
    whole = (double)(int64_t)real;
    memcpy(&whole_bits, &whole, sizeof whole_bits);
    if (whole_bits == bits)
      return (int64_t)real;
  }
  if (bits <= -limit || bits >= limit)
    return bits;
  whole = (double)bits;
  memcpy(&whole_bits, &whole, sizeof whole_bits);
  return whole_bits;
}

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
/* Changes a cell, unless its column is the row's number. */
void st_table_set(struct st_table* t, uint32_t row, uint32_t column,
                  struct st_cell cell);
struct st_cell st_table_get(const struct st_table* t, uint32_t row,
                            uint32_t column);
/* Returns the number of rows of the segments that have this row. */
uint32_t st_table_segment_rows(const struct st_table* t, uint32_t row);
/* Returns the segment of a column that has this row.  Doubles are codes. */
static inline struct st_segment* st_table_segment(const struct st_table* t,
                                                  uint32_t row,
                                                  uint32_t column) {
  uint32_t first = row / ST_SEGMENT_ROWS * t->spec->column_count;
  return &t->segments.data[first + column];
}
void st_table_free(struct st_table* t);
