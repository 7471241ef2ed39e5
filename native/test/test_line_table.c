/* Tests of the line table: each kind of entry, and malformed tables. */
#include "probes/line_table.h"

#include <string.h>

#include "check.h"
#include "random.h"

enum { FIRST_LINE = 10 };

static int32_t line_at(const uint8_t* table, size_t size, int64_t unit) {
  return st_line_of(table, size, FIRST_LINE, unit);
}

/* The head of an entry: its kind and its number of code units. */
#define HEAD(kind, units) (0x80 | (kind) << 3 | ((units)-1))

static void each_kind_changes_the_line(void) {
  const uint8_t table[] = {
      HEAD(13, 2), 2 << 1,                 /* Units 0 and 1: line 12. */
      HEAD(0, 1),  0x12,                   /* Unit 2: the same line. */
      HEAD(11, 3), 1,        2,            /* Units 3 to 5: line 13. */
      HEAD(14, 1), 3 | 1,    0,      1, 2, /* Unit 6: line 12. */
      HEAD(15, 1),                         /* Unit 7: no line. */
      HEAD(13, 8), 0x40 | 0, 1 << 1,       /* Units 8 to 15: line 12 + 64. */
  };
  const int32_t lines[] = {12, 12, 12, 13, 13, 13, 12, ST_NO_LINE, 76, 76};
  for (int unit = 0; unit < 10; unit++)
    CHECK_EQ(line_at(table, sizeof table, unit), lines[unit]);
  CHECK_EQ(line_at(table, sizeof table, 15), 76);
}

static void units_outside_the_table_have_no_line(void) {
  const uint8_t table[] = {HEAD(13, 2), 0};
  CHECK_EQ(line_at(table, sizeof table, 1), FIRST_LINE);
  CHECK_EQ(line_at(table, sizeof table, 2), ST_NO_LINE);
  CHECK_EQ(line_at(table, sizeof table, -1), ST_NO_LINE);
  CHECK_EQ(line_at(table, 0, 0), ST_NO_LINE);
}

static void malformed_tables_have_no_line(void) {
  const uint8_t cut[] = {HEAD(14, 1), 2};
  const uint8_t endless[] = {HEAD(13, 1), 0x7F, 0x7F, 0x7F, 0x7F,
                             0x7F,        0x7F, 0x7F, 0x7F};
  const uint8_t no_head[] = {0x10, 0x00};
  const uint8_t below_one[] = {HEAD(13, 1), 30 << 1 | 1};
  CHECK_EQ(line_at(cut, sizeof cut, 0), ST_NO_LINE);
  CHECK_EQ(line_at(endless, sizeof endless, 0), ST_NO_LINE);
  CHECK_EQ(line_at(no_head, sizeof no_head, 0), ST_NO_LINE);
  CHECK_EQ(line_at(below_one, sizeof below_one, 0), ST_NO_LINE);
}

static void random_tables_are_read_within_their_bounds(void) {
  uint64_t random = 11;
  for (int i = 0; i < 20000; i++) {
    size_t size = random_below(&random, 64);
    uint8_t* table = malloc(size ? size : 1);
    for (size_t at = 0; at < size; at++)
      table[at] = (uint8_t)random_next(&random);
    CHECK(line_at(table, size, (int64_t)random_below(&random, 300)) >= 0);
    free(table);
  }
}

int main(void) {
  RUN(each_kind_changes_the_line);
  RUN(units_outside_the_table_have_no_line);
  RUN(malformed_tables_have_no_line);
  RUN(random_tables_are_read_within_their_bounds);
  return 0;
}
