/* Tests of the rules for texts of the event ftrace/print. */
#include "probes/print_filter.h"

#include <string.h>

#include "check.h"

static bool allows(const struct st_print_rule* rules, size_t count,
                   const char* text) {
  struct st_print_filter filter = {rules, count};
  return st_print_filter_allows(&filter, (const uint8_t*)text, strlen(text));
}

static const uint8_t* bytes(const char* text) {
  return (const uint8_t*)text;
}

static void first_rule_that_matches_decides(void) {
  struct st_print_rule rules[] = {{NULL, bytes("ab"), 0, 2, true},
                                  {NULL, bytes("a"), 0, 1, false}};
  CHECK(allows(rules, 2, "abc"));
  CHECK(!allows(rules, 2, "acc"));
  CHECK(!allows(rules, 2, "a"));
  CHECK(allows(rules, 2, "other"));
  CHECK(allows(rules, 0, "a"));
}

static void empty_prefix_matches_all_texts(void) {
  struct st_print_rule rule = {NULL, bytes(""), 0, 0, false};
  CHECK(!allows(&rule, 1, ""));
  CHECK(!allows(&rule, 1, "a"));
}

static void marks_are_matched_by_type_and_name(void) {
  struct st_print_rule rule = {bytes("B"), bytes("draw"), 1, 4, false};
  CHECK(!allows(&rule, 1, "B|12|draw\n"));
  CHECK(!allows(&rule, 1, "B||drawing"));
  CHECK(allows(&rule, 1, "B|12|dra"));
  CHECK(allows(&rule, 1, "B|1x|draw"));
  CHECK(allows(&rule, 1, "C|12|draw"));
  CHECK(allows(&rule, 1, "B|12"));
  CHECK(allows(&rule, 1, "B"));
  CHECK(allows(&rule, 1, ""));
}

int main(void) {
  RUN(first_rule_that_matches_decides);
  RUN(empty_prefix_matches_all_texts);
  RUN(marks_are_matched_by_type_and_name);
  return 0;
}
