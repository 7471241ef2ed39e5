#include "analysis/table.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"

/* The rows of a segment, and some of a second one. */
enum { ROWS = ST_SEGMENT_ROWS + 1000 };

enum { ROW, NUMBER, REAL, COLUMNS };

static const struct st_column_spec kColumns[] = {{"id", ST_ROW},
                                                 {"a", ST_INT64},
                                                 {"b", ST_DOUBLE}};
static const struct st_table_spec kSpec = {"t", COLUMNS, kColumns};

static int64_t number_at(const struct st_table* t, uint32_t row) {
  return st_table_get(t, row, NUMBER).i;
}

static void fill(struct st_table* t, uint32_t rows,
                 struct st_cell (*number)(uint32_t row)) {
  st_table_init(t, &kSpec);
  for (uint32_t i = 0; i < rows; i++) {
    struct st_cell real = i > 700 ? st_real((double)i / 2) : ST_NULL;
    struct st_cell cells[] = {ST_NULL, number(i), real};
    CHECK_EQ(st_table_add(t, cells), i);
  }
}

static struct st_cell two_of_three(uint32_t row) {
  return row % 3 ? st_int(row) : ST_NULL;
}

static void columns_keep_nulls_and_values(void) {
  struct st_table t;
  fill(&t, ROWS, two_of_three);
  st_table_set(&t, 3, NUMBER, st_int(-1));
  st_table_set(&t, 4, NUMBER, ST_NULL);
  st_table_set(&t, 5, REAL, st_real(0.5));
  for (uint32_t i = 6; i < ROWS; i++) {
    CHECK_EQ(st_table_get(&t, i, NUMBER).valid, i % 3 != 0);
    CHECK_EQ(st_table_get(&t, i, REAL).valid, i > 700);
    CHECK(i % 3 == 0 || number_at(&t, i) == i);
    CHECK(i <= 700 || st_table_get(&t, i, REAL).f == (double)i / 2);
    CHECK_EQ(st_table_get(&t, i, ROW).i, i);
  }
  CHECK_EQ(number_at(&t, 3), -1);
  CHECK(!st_table_get(&t, 4, NUMBER).valid);
  CHECK(st_table_get(&t, 5, REAL).f == 0.5);
  st_table_free(&t);
}

/* Numbers of all widths, positive and negative, as far apart as possible. */
static struct st_cell growing(uint32_t row) {
  static const int64_t kNumbers[] = {5,         5,        -100,      200,
                                     -40000,    70000,    INT32_MAX, INT32_MIN,
                                     INT64_MAX, INT64_MIN};
  uint32_t step = ST_SEGMENT_ROWS / 10 + 1;
  return row % ST_SEGMENT_ROWS % 2
             ? st_int(row)
             : st_int(kNumbers[row % ST_SEGMENT_ROWS / step]);
}

static void segments_are_widened(void) {
  struct st_table t;
  fill(&t, ROWS, growing);
  for (uint32_t i = 0; i < ROWS; i++)
    CHECK_EQ(number_at(&t, i), growing(i).i);
  st_table_free(&t);
}

static void changed_cells_widen_full_segments(void) {
  struct st_table t;
  fill(&t, ROWS, two_of_three);
  st_table_set(&t, 1, NUMBER, st_int(INT64_MIN));
  st_table_set(&t, ROWS - 1, NUMBER, st_int(INT64_MAX));
  CHECK_EQ(number_at(&t, 1), INT64_MIN);
  CHECK_EQ(number_at(&t, ROWS - 1), INT64_MAX);
  for (uint32_t i = 2; i < ROWS - 1; i++)
    CHECK(i % 3 == 0 || number_at(&t, i) == i);
  st_table_free(&t);
}

static struct st_cell constant(uint32_t row) {
  (void)row;
  return st_int(1000000000000);
}

static struct st_cell null(uint32_t row) {
  (void)row;
  return ST_NULL;
}

static void equal_cells_have_no_memory(void) {
  struct st_table t;
  fill(&t, ROWS, constant);
  CHECK(!st_table_segment(&t, 0, NUMBER)->data);
  CHECK_EQ(number_at(&t, ROWS - 1), 1000000000000);
  st_table_set(&t, 7, NUMBER, ST_NULL);
  CHECK(!st_table_get(&t, 7, NUMBER).valid);
  CHECK_EQ(number_at(&t, 8), 1000000000000);
  st_table_free(&t);
  fill(&t, ROWS, null);
  CHECK(!st_table_segment(&t, 0, NUMBER)->validity);
  st_table_set(&t, 7, NUMBER, st_int(-7));
  CHECK_EQ(number_at(&t, 7), -7);
  CHECK(!st_table_get(&t, 6, NUMBER).valid);
  CHECK(!st_table_get(&t, ROWS - 1, NUMBER).valid);
  st_table_free(&t);
}

static void segments_are_copied_as_integers(void) {
  static int64_t wide[ST_SEGMENT_ROWS];
  static int32_t narrow[ST_SEGMENT_ROWS];
  struct st_table t;
  fill(&t, ROWS, growing);
  st_segment_copy64(st_table_segment(&t, 0, NUMBER), ST_SEGMENT_ROWS, wide);
  for (uint32_t i = 0; i < ST_SEGMENT_ROWS; i++)
    CHECK_EQ(wide[i], growing(i).i);
  uint32_t rows = st_table_segment_rows(&t, ST_SEGMENT_ROWS);
  CHECK_EQ(rows, ROWS - ST_SEGMENT_ROWS);
  st_segment_copy32(st_table_segment(&t, ROWS - 1, NUMBER), rows, narrow);
  for (uint32_t i = 0; i < rows; i++)
    CHECK_EQ(narrow[i], growing(ST_SEGMENT_ROWS + i).i);
  st_table_free(&t);
}

/* Whole numbers, and doubles that have their bits. */
static void reals_keep_all_of_their_bits(void) {
  static const double kReals[] = {0.0,
                                  -0.0,
                                  1,
                                  -1,
                                  7,
                                  0.5,
                                  -3.25,
                                  4503599627370495.0,
                                  -4503599627370495.0,
                                  4503599627370496.0,
                                  -4503599627370496.0,
                                  1e300,
                                  5e-324,
                                  3.5e-323,
                                  2e-308,
                                  INFINITY,
                                  -INFINITY,
                                  NAN};
  struct st_table t;
  st_table_init(&t, &kSpec);
  uint32_t count = sizeof kReals / sizeof *kReals;
  for (uint32_t i = 0; i < count; i++) {
    struct st_cell cells[] = {ST_NULL, ST_NULL, st_real(kReals[i])};
    st_table_add(&t, cells);
    CHECK_EQ(st_real_code(st_real_code(cells[REAL].i)), cells[REAL].i);
  }
  for (uint32_t i = 0; i < count; i++)
    CHECK_EQ(st_table_get(&t, i, REAL).i, st_real(kReals[i]).i);
  for (int64_t bits = -9; bits < 9; bits++)
    CHECK_EQ(st_real_code(st_real_code(bits)), bits);
  st_table_free(&t);
}

static void whole_reals_take_the_bytes_of_integers(void) {
  struct st_table t;
  st_table_init(&t, &kSpec);
  for (uint32_t i = 0; i < 100; i++) {
    struct st_cell cells[] = {ST_NULL, ST_NULL, st_real(1e9 + i)};
    st_table_add(&t, cells);
  }
  CHECK_EQ(st_table_segment(&t, 0, REAL)->width, 1);
  CHECK(st_table_get(&t, 99, REAL).f == 1e9 + 99);
  st_table_free(&t);
}

int main(void) {
  jmp_buf place;
  st_memory_catch(&place);
  CHECK_EQ(setjmp(place), 0);
  RUN(columns_keep_nulls_and_values);
  RUN(reals_keep_all_of_their_bits);
  RUN(whole_reals_take_the_bytes_of_integers);
  RUN(segments_are_widened);
  RUN(changed_cells_widen_full_segments);
  RUN(equal_cells_have_no_memory);
  RUN(segments_are_copied_as_integers);
  return 0;
}
