#include "table.h"

#include <stdlib.h>
#include <string.h>

static const size_t kSizes[] = {4, 8, 8, 4};

void st_table_init(struct st_table* t, const struct st_table_spec* spec) {
  *t = (struct st_table){.spec = spec};
  t->columns = st_memory_new(spec->column_count * sizeof *t->columns);
}

static size_t bitmap_size(uint32_t capacity) {
  return ((size_t)capacity + 63) / 64 * 8;
}

static void* resized(void* data, size_t size) {
  void* grown = realloc(data, size);
  if (!grown)
    st_memory_fail();
  return grown;
}

static void grow(struct st_table* t) {
  uint64_t wanted = (uint64_t)t->capacity + t->capacity / 2 + 16;
  if (wanted > INT32_MAX)
    st_memory_fail();
  uint32_t old = t->capacity, capacity = (uint32_t)wanted;
  for (uint32_t i = 0; i < t->spec->column_count; i++) {
    struct st_column* c = &t->columns[i];
    size_t size = kSizes[t->spec->columns[i].type];
    /* The system has no memory for new cells before they are stored. */
    if (c->data)
      c->data = resized(c->data, capacity * size);
    if (!c->validity)
      continue;
    c->validity = resized(c->validity, bitmap_size(capacity));
    memset(c->validity + bitmap_size(old), 0,
           bitmap_size(capacity) - bitmap_size(old));
  }
  t->capacity = capacity;
}

/* Gives a column memory for all rows.  Until then, all its values are NULL. */
static void materialize(struct st_table* t, uint32_t column) {
  struct st_column* c = &t->columns[column];
  size_t capacity = t->capacity ? t->capacity : 1;
  if (!c->data)
    c->data = st_memory_new(capacity * kSizes[t->spec->columns[column].type]);
  if (!c->validity && c->nulls)
    c->validity = st_memory_new(bitmap_size((uint32_t)capacity));
}

/* Adds a bitmap to a column that had no NULL: all rows before are valid. */
static void add_bitmap(struct st_table* t, struct st_column* c, uint32_t rows) {
  c->validity = st_memory_new(bitmap_size(t->capacity));
  memset(c->validity, 0xFF, rows / 8);
  if (rows % 8)
    c->validity[rows / 8] = (uint8_t)((1u << rows % 8) - 1);
}

static void store(const struct st_table* t, uint32_t row, uint32_t column,
                  struct st_cell cell) {
  void* data = t->columns[column].data;
  switch (t->spec->columns[column].type) {
    case ST_INT32:
    case ST_TEXT:
      ((int32_t*)data)[row] = cell.valid ? (int32_t)cell.i : 0;
      break;
    case ST_INT64:
      ((int64_t*)data)[row] = cell.valid ? cell.i : 0;
      break;
    default:
      ((double*)data)[row] = cell.valid ? cell.f : 0;
  }
}

static void append(struct st_table* t, uint32_t column, struct st_cell cell) {
  struct st_column* c = &t->columns[column];
  uint32_t row = t->rows;
  if (cell.valid) {
    if (!c->data)
      materialize(t, column);
    if (c->validity)
      c->validity[row / 8] |= (uint8_t)(1u << row % 8);
  } else {
    if (c->data && !c->validity)
      add_bitmap(t, c, row);
    c->nulls++;
  }
  if (c->data)
    store(t, row, column, cell);
}

uint32_t st_table_add(struct st_table* t, const struct st_cell* cells) {
  if (t->rows == t->capacity)
    grow(t);
  for (uint32_t i = 0; i < t->spec->column_count; i++)
    append(t, i, cells[i]);
  return t->rows++;
}

static bool is_valid(const struct st_column* c, uint32_t row) {
  if (!c->validity)
    return c->nulls == 0;
  return c->validity[row / 8] >> row % 8 & 1;
}

void st_table_set(struct st_table* t, uint32_t row, uint32_t column,
                  struct st_cell cell) {
  struct st_column* c = &t->columns[column];
  if (is_valid(c, row) != cell.valid) {
    if (!c->data)
      materialize(t, column);
    if (!c->validity)
      add_bitmap(t, c, t->rows);
    c->validity[row / 8] ^= (uint8_t)(1u << row % 8);
    c->nulls += cell.valid ? -1u : 1u;
  }
  if (c->data)
    store(t, row, column, cell);
}

struct st_cell st_table_get(const struct st_table* t, uint32_t row,
                            uint32_t column) {
  const struct st_column* c = &t->columns[column];
  if (!c->data || !is_valid(c, row))
    return ST_NULL;
  switch (t->spec->columns[column].type) {
    case ST_INT32:
    case ST_TEXT:
      return st_int(((int32_t*)c->data)[row]);
    case ST_INT64:
      return st_int(((int64_t*)c->data)[row]);
    default:
      return st_real(((double*)c->data)[row]);
  }
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

void st_table_complete(struct st_table* t, void* zeros) {
  for (uint32_t i = 0; i < t->spec->column_count; i++) {
    struct st_column* c = &t->columns[i];
    if (c->data)
      continue;
    c->data = c->validity = zeros;
    c->is_shared = true;
  }
}

void st_table_free(struct st_table* t) {
  for (uint32_t i = 0; t->columns && i < t->spec->column_count; i++) {
    if (t->columns[i].is_shared)
      continue;
    free(t->columns[i].data);
    free(t->columns[i].validity);
  }
  free(t->columns);
  *t = (struct st_table){0};
}
