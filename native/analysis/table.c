#include "table.h"

#include <stdlib.h>

void st_table_init(struct st_table* t, const struct st_table_spec* spec) {
  *t = (struct st_table){.spec = spec};
}

static void add_segments(struct st_table* t) {
  uint32_t count = t->spec->column_count;
  ST_RESERVE(&t->segments, count);
  for (uint32_t i = 0; i < count; i++)
    *ST_PUSH(&t->segments) = (struct st_segment){0};
}

/* The first segments grow until they are full; others begin with room for all
 * of their rows. */
static void grow(struct st_table* t) {
  uint32_t old = t->capacity;
  if (old % ST_SEGMENT_ROWS == 0)
    add_segments(t);
  if (old >= ST_SEGMENT_ROWS) {
    if (old > INT32_MAX - ST_SEGMENT_ROWS)
      st_memory_fail();
    t->capacity += ST_SEGMENT_ROWS;
    return;
  }
  uint32_t wanted = old + old / 2 + 16;
  t->capacity = wanted < ST_SEGMENT_ROWS ? wanted : ST_SEGMENT_ROWS;
  for (uint32_t i = 0; i < t->spec->column_count; i++)
    st_segment_grow(&t->segments.data[i], old, t->capacity);
}

/* Returns the room of a segment. */
static uint32_t room(const struct st_table* t) {
  return t->capacity < ST_SEGMENT_ROWS ? t->capacity : ST_SEGMENT_ROWS;
}

/* Returns the value of a cell as its column keeps it. */
static int64_t stored(enum st_type type, struct st_cell cell) {
  return type == ST_DOUBLE ? st_real_code(cell.i) : cell.i;
}

uint32_t st_table_add(struct st_table* t, const struct st_cell* cells) {
  if (t->rows == t->capacity)
    grow(t);
  struct st_segment* segments = st_table_segment(t, t->rows, 0);
  uint32_t row = t->rows % ST_SEGMENT_ROWS, capacity = room(t);
  for (uint32_t i = 0; i < t->spec->column_count; i++) {
    enum st_type type = t->spec->columns[i].type;
    if (type != ST_ROW)
      st_segment_append(&segments[i], row, capacity, cells[i].valid,
                        stored(type, cells[i]));
  }
  return t->rows++;
}

uint32_t st_table_segment_rows(const struct st_table* t, uint32_t row) {
  uint32_t left = t->rows - row / ST_SEGMENT_ROWS * ST_SEGMENT_ROWS;
  return left < ST_SEGMENT_ROWS ? left : ST_SEGMENT_ROWS;
}

void st_table_set(struct st_table* t, uint32_t row, uint32_t column,
                  struct st_cell cell) {
  enum st_type type = t->spec->columns[column].type;
  if (type != ST_ROW)
    st_segment_set(st_table_segment(t, row, column), row % ST_SEGMENT_ROWS,
                   st_table_segment_rows(t, row), room(t), cell.valid,
                   stored(type, cell));
}

struct st_cell st_table_get(const struct st_table* t, uint32_t row,
                            uint32_t column) {
  enum st_type type = t->spec->columns[column].type;
  if (type == ST_ROW)
    return st_int(row);
  const struct st_segment* s = st_table_segment(t, row, column);
  if (!st_segment_is_valid(s, row % ST_SEGMENT_ROWS))
    return ST_NULL;
  int64_t value = st_segment_get(s, row % ST_SEGMENT_ROWS);
  return st_int(type == ST_DOUBLE ? st_real_code(value) : value);
}

static bool has_cells(const struct st_table* t, uint32_t row,
                      const struct st_cell* cells) {
  for (uint32_t i = 1; i < t->spec->column_count; i++) {
    struct st_cell cell = st_table_get(t, row, i);
    if (cell.valid != cells[i].valid || (cell.valid && cell.i != cells[i].i))
      return false;
  }
  return true;
}

uint32_t st_table_intern(struct st_table* t, struct st_map* rows,
                         struct st_cell* cells) {
  uint64_t hash = st_mix((uintptr_t)rows);
  for (uint32_t i = 1; i < t->spec->column_count; i++)
    hash = st_mix(hash ^ (cells[i].valid ? (uint64_t)cells[i].i : i));
  for (;; hash++) {
    uint32_t* row = st_map_at(rows, hash);
    if (*row && has_cells(t, *row - 1, cells))
      return *row - 1;
    if (*row)
      continue;
    *row = t->rows + 1;
    cells[0] = st_int(t->rows);
    return st_table_add(t, cells);
  }
}

void st_table_free(struct st_table* t) {
  for (uint32_t i = 0; i < t->segments.size; i++)
    st_segment_free(&t->segments.data[i]);
  free(t->segments.data);
  *t = (struct st_table){0};
}
