#include "filter_bytecode.h"

#include <string.h>

#include "check.h"
#include "filter_code.h"

static struct st_filter_bytecode loaded;

static const char* try_load(struct code code, struct code overlay) {
  return st_filter_bytecode_load(&loaded, code.data, code.size, overlay.data,
                                 overlay.size);
}

static const struct code no_overlay;

static void expect_error(const char* part, struct code code,
                         struct code overlay) {
  const char* error = try_load(code, overlay);
  if (!error || !strstr(error, part)) {
    fprintf(stderr, "expected an error with '%s', got: %s\n", part,
            error ? error : "none");
    check_failed();
  }
  CHECK_EQ(st_filter_bytecode_messages(&loaded), 0);
  CHECK(!loaded.words.data && !loaded.offsets.data);
}

/* Loads bytecode; fails the test if it cannot be loaded. */
static void load(struct code code, struct code overlay) {
  const char* error = try_load(code, overlay);
  if (error)
    fprintf(stderr, "%s\n", error);
  CHECK(!error);
}

static uint32_t rule(uint32_t message, uint32_t field) {
  return st_filter_bytecode_query(&loaded, message, field);
}

#define LOAD(...) load(CODE(__VA_ARGS__), no_overlay)
#define REFUSE(part, ...) expect_error(part, CODE(__VA_ARGS__), no_overlay)

static void unload(void) {
  st_filter_bytecode_free(&loaded);
}

static void checksum_is_the_low_half_of_fnv1a_64(void) {
  /* The checksum: the low half of FNV-1a-64 over 0b 00 00 00, 01 00 00 00, 00
   * 00 00 00. */
  struct code code = CODE(NESTED(1, 1), END, END);
  CHECK_EQ(code.data[0], 0x0B);
  load(code, no_overlay);
  unload();
  code.data[code.size - 1] ^= 1;
  expect_error("checksum", code, no_overlay);
}

static void empty_bytecode_is_refused_and_checksum_alone_is_valid(void) {
  expect_error("empty", (struct code){.size = 0}, no_overlay);
  load(make_code(NULL, 0), no_overlay);
  CHECK_EQ(st_filter_bytecode_messages(&loaded), 0);
  CHECK_EQ(rule(0, 1), ST_FILTER_DENIED);
  unload();
}

static void incomplete_varint_is_refused(void) {
  struct code code = CODE(SIMPLE(1), END);
  code.data[code.size - 1] |= 0x80;
  expect_error("varint", code, no_overlay);
}

static void words_are_truncated_to_32_bits(void) {
  struct code code = CODE(SIMPLE(2), END);
  uint8_t* p = st_put_varint(code.data, 1ull << 32 | SIMPLE(2));
  struct code tail = CODE(SIMPLE(2), END);
  memcpy(p, tail.data + 1, tail.size - 1);
  code.size = (size_t)(p - code.data) + tail.size - 1;
  load(code, no_overlay);
  CHECK_EQ(rule(0, 2), ST_FILTER_RULE_SIMPLE);
  unload();
}

static void each_message_needs_its_end(void) {
  LOAD(END);
  CHECK_EQ(st_filter_bytecode_messages(&loaded), 1);
  unload();
  LOAD(END, END);
  CHECK_EQ(st_filter_bytecode_messages(&loaded), 2);
  unload();
  REFUSE("no end", SIMPLE(1));
  REFUSE("no end", END, SIMPLE(1));
}

static void simple_fields_are_allowed(void) {
  LOAD(SIMPLE(1), SIMPLE(5), SIMPLE(127), SIMPLE(128), SIMPLE(1000),
       SIMPLE(1 << 28), END);
  const uint32_t allowed[] = {1, 5, 127, 128, 1000, 1 << 28};
  const uint32_t denied[] = {0,   2,    4,    6,   126,
                             129, 1001, 1002, 999, (1 << 28) + 1};
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
    CHECK_EQ(rule(0, allowed[i]), ST_FILTER_RULE_SIMPLE);
  for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
    CHECK_EQ(rule(0, denied[i]), ST_FILTER_DENIED);
  CHECK_EQ(rule(1, 1), ST_FILTER_DENIED);
  unload();
}

static void invalid_words_are_refused(void) {
  REFUSE("number 0", SIMPLE(0), END);
  REFUSE("unknown opcode", 1 << 3 | 6, END);
  REFUSE("unknown opcode", 1 << 3 | 7, END);
  REFUSE("within an instruction", 1 << 3 | ST_FILTER_SIMPLE_FIELD_RANGE);
  REFUSE("within an instruction", 1 << 3 | ST_FILTER_NESTED_FIELD);
  REFUSE("within an instruction", 1 << 3 | ST_FILTER_STRING_WITH_TYPE);
}

static void ranges_allow_all_their_fields(void) {
  LOAD(RANGE(1, 3), RANGE(10, 0), RANGE(20, 1), RANGE(126, 4), RANGE(200, 100),
       RANGE(300, 1), END);
  for (uint32_t field = 0; field < 400; field++) {
    bool allowed = (field >= 1 && field <= 3) || field == 20 ||
                   (field >= 126 && field <= 129) ||
                   (field >= 200 && field <= 300);
    CHECK_EQ(rule(0, field), allowed ? ST_FILTER_RULE_SIMPLE : 0);
  }
  unload();
}

static void overlapping_ranges_are_refused(void) {
  REFUSE("overlap", RANGE(130, 10), SIMPLE(139), END);
  REFUSE("overlap", SIMPLE(500), SIMPLE(499), END);
  /* A field below 128 may have several rules: the last one counts. */
  LOAD(RANGE(1, 10), NESTED(5, 0), END);
  CHECK_EQ(rule(0, 5), ST_FILTER_ALLOWED);
  CHECK_EQ(rule(0, 6), ST_FILTER_RULE_SIMPLE);
  unload();
}

static void range_that_exceeds_32_bits_is_empty(void) {
  LOAD(RANGE(100, UINT32_MAX), RANGE(200, UINT32_MAX - 199), END);
  CHECK_EQ(rule(0, 100), ST_FILTER_DENIED);
  CHECK_EQ(rule(0, 200), ST_FILTER_DENIED);
  unload();
}

static void nested_fields_refer_to_messages(void) {
  LOAD(NESTED(4, 1), NESTED(200, 2), END, SIMPLE(1), NESTED(2, 1), END,
       NESTED(3, 0), END);
  CHECK_EQ(rule(0, 4), ST_FILTER_ALLOWED | 1);
  CHECK_EQ(rule(0, 200), ST_FILTER_ALLOWED | 2);
  CHECK_EQ(rule(1, 2), ST_FILTER_ALLOWED | 1);
  CHECK_EQ(rule(1, 4), ST_FILTER_DENIED);
  CHECK_EQ(rule(1, 200), ST_FILTER_DENIED);
  CHECK_EQ(rule(2, 3), ST_FILTER_ALLOWED | 0);
  CHECK(st_filter_is_nested(rule(2, 3)) && !st_filter_is_string(rule(2, 3)));
  CHECK_EQ(st_filter_nested_message(rule(0, 200)), 2);
  unload();
  REFUSE("refers to a message", NESTED(1, 1), END);
  REFUSE("refers to a message", NESTED(1, UINT32_MAX), END);
  REFUSE("refers to a message", NESTED(1, 0x7FFFFFFF), END);
}

static void string_fields_have_a_string_rule(void) {
  LOAD(STRING(1), TYPED(2, 3), TYPED(300, 0x10002), END);
  CHECK_EQ(rule(0, 1), ST_FILTER_RULE_STRING);
  CHECK_EQ(st_filter_semantic_type(rule(0, 1)), 0);
  CHECK(st_filter_is_string(rule(0, 2)) && !st_filter_is_nested(rule(0, 2)));
  CHECK_EQ(st_filter_semantic_type(rule(0, 2)), 3);
  CHECK_EQ(st_filter_semantic_type(rule(0, 300)), 2);
  CHECK(!st_filter_is_string(ST_FILTER_RULE_SIMPLE));
  CHECK(!st_filter_is_string(ST_FILTER_DENIED));
  unload();
}

static void no_semantic_type_allows_a_string_unfiltered(void) {
  LOAD(TYPED(1, 0xFFFF), TYPED(2, 0xFFFE), TYPED(3, 0xFFFD), END);
  for (uint32_t field = 1; field <= 3; field++) {
    CHECK(st_filter_is_string(rule(0, field)));
    CHECK_EQ(st_filter_semantic_type(rule(0, field)), 0xFFFD);
  }
  unload();
}

#define TRIPLET(message, instruction, argument) \
  (message), (instruction), (argument)
#define TYPE_OPCODE(field) ((uint32_t)(field) << 3 | ST_FILTER_STRING_WITH_TYPE)

static void overlay_replaces_and_adds_rules(void) {
  load(CODE(SIMPLE(2), NESTED(5, 1), SIMPLE(300), END, SIMPLE(1), END),
       CODE(TRIPLET(0, SIMPLE(1), 0), TRIPLET(0, STRING(2), 0),
            TRIPLET(0, SIMPLE(250), 0), TRIPLET(0, TYPE_OPCODE(300), 7),
            TRIPLET(0, SIMPLE(400), 0), TRIPLET(1, TYPE_OPCODE(3), 2)));
  CHECK_EQ(rule(0, 1), ST_FILTER_RULE_SIMPLE);
  CHECK_EQ(rule(0, 2), ST_FILTER_RULE_STRING);
  CHECK_EQ(rule(0, 5), ST_FILTER_ALLOWED | 1);
  CHECK_EQ(rule(0, 250), ST_FILTER_RULE_SIMPLE);
  CHECK_EQ(rule(0, 300), ST_FILTER_RULE_TYPED_STRING | 7);
  CHECK_EQ(rule(0, 400), ST_FILTER_RULE_SIMPLE);
  CHECK_EQ(rule(1, 1), ST_FILTER_RULE_SIMPLE);
  CHECK_EQ(rule(1, 3), ST_FILTER_RULE_TYPED_STRING | 2);
  unload();
}

static void overlay_is_not_merged_at_ranges(void) {
  /* The overlay's rule for field 5 is applied when field 10 is read, that is
   * after the range.  So it replaces the rule of the range. */
  load(CODE(RANGE(3, 4), SIMPLE(10), END), CODE(TRIPLET(0, STRING(5), 0)));
  CHECK_EQ(rule(0, 4), ST_FILTER_RULE_SIMPLE);
  CHECK_EQ(rule(0, 5), ST_FILTER_RULE_STRING);
  unload();
  expect_error("overlap", CODE(RANGE(130, 10), END),
               CODE(TRIPLET(0, STRING(135), 0)));
}

static void overlay_without_entries_changes_nothing(void) {
  load(CODE(SIMPLE(1), END), make_code(NULL, 0));
  CHECK_EQ(rule(0, 1), ST_FILTER_RULE_SIMPLE);
  unload();
}

static void invalid_overlays_are_refused(void) {
  struct code code = CODE(SIMPLE(1), END);
  struct code torn = CODE(TRIPLET(0, SIMPLE(2), 0));
  torn.data[torn.size - 1] ^= 1;
  expect_error("checksum", code, torn);
  expect_error("triplet", code, CODE(0, SIMPLE(2)));
  expect_error("opcode", code, CODE(TRIPLET(0, 2 << 3 | 2, 0)));
  expect_error("opcode", code, CODE(TRIPLET(0, 2 << 3 | 3, 0)));
  expect_error("opcode", code, CODE(TRIPLET(0, END, 0)));
  expect_error("field 0", code, CODE(TRIPLET(0, SIMPLE(0), 0)));
  expect_error("sorted", code,
               CODE(TRIPLET(0, SIMPLE(3), 0), TRIPLET(0, SIMPLE(2), 0)));
  expect_error("sorted", code,
               CODE(TRIPLET(0, SIMPLE(3), 0), TRIPLET(0, STRING(3), 0)));
  expect_error("sorted", CODE(END, END),
               CODE(TRIPLET(1, SIMPLE(1), 0), TRIPLET(0, SIMPLE(2), 0)));
  expect_error("doesn't have", code, CODE(TRIPLET(1, SIMPLE(2), 0)));
}

int main(void) {
  RUN(checksum_is_the_low_half_of_fnv1a_64);
  RUN(empty_bytecode_is_refused_and_checksum_alone_is_valid);
  RUN(incomplete_varint_is_refused);
  RUN(words_are_truncated_to_32_bits);
  RUN(each_message_needs_its_end);
  RUN(simple_fields_are_allowed);
  RUN(invalid_words_are_refused);
  RUN(ranges_allow_all_their_fields);
  RUN(overlapping_ranges_are_refused);
  RUN(range_that_exceeds_32_bits_is_empty);
  RUN(nested_fields_refer_to_messages);
  RUN(string_fields_have_a_string_rule);
  RUN(no_semantic_type_allows_a_string_unfiltered);
  RUN(overlay_replaces_and_adds_rules);
  RUN(overlay_is_not_merged_at_ranges);
  RUN(overlay_without_entries_changes_nothing);
  RUN(invalid_overlays_are_refused);
  return 0;
}
