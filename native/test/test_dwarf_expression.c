/* Tests of DWARF expressions: operations, what they may read, and expressions
 * that fail. */
#include "probes/dwarf_expression.h"

#include <string.h>

#include "check.h"

enum { MEMORY = 0x1000, KNOWN = 3, UNKNOWN = 4 };

static const uint8_t kBytes[] = {0x11, 0x22, 0x33, 0x44, 0x55,
                                 0x66, 0x77, 0x88, 0x99};

static bool read_bytes(void* self, uint64_t address, void* to, size_t size) {
  (void)self;
  uint64_t at = address - MEMORY;
  if (at > sizeof kBytes || size > sizeof kBytes - at)
    return false;
  memcpy(to, kBytes + at, size);
  return true;
}

static const struct st_memory kMemory = {.read = read_bytes};
static const struct st_registers kRegisters = {
    .pc = 0x40001B,
    .known = 1 << ST_UNWIND_SP | 1 << KNOWN,
    .values = {[ST_UNWIND_SP] = MEMORY, [KNOWN] = 1000},
};

#define CODE(...) \
  ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static bool evaluate(const uint8_t* code, size_t size, const uint64_t* first,
                     uint64_t* result) {
  uint8_t bytes[100] = {(uint8_t)size};
  memcpy(bytes + 1, code, size);
  struct st_dwarf_cursor c = {.at = bytes, .end = bytes + 1 + size};
  struct st_expression e = st_expression_take(&c);
  CHECK(!c.is_bad && c.at == c.end);
  return st_expression_evaluate(&e, &kMemory, &kRegisters, first, result);
}

static uint64_t value_of(const uint8_t* code, size_t size) {
  uint64_t result = 0;
  CHECK(evaluate(code, size, NULL, &result));
  return result;
}

static bool fails(const uint8_t* code, size_t size) {
  uint64_t result;
  return !evaluate(code, size, NULL, &result);
}

static void constants_have_a_size_and_a_sign(void) {
  CHECK_EQ(value_of(CODE(0x30)), 0);
  CHECK_EQ(value_of(CODE(0x4F)), 31);
  CHECK_EQ(value_of(CODE(0x08, 0xFE)), 0xFE);
  CHECK_EQ(value_of(CODE(0x09, 0xFE)), -2);
  CHECK_EQ(value_of(CODE(0x0A, 0xFE, 0xFF)), 0xFFFE);
  CHECK_EQ(value_of(CODE(0x0B, 0xFE, 0xFF)), -2);
  CHECK_EQ(value_of(CODE(0x0C, 0xFE, 0xFF, 0xFF, 0xFF)), 0xFFFFFFFE);
  CHECK_EQ(value_of(CODE(0x0D, 0xFE, 0xFF, 0xFF, 0xFF)), -2);
  CHECK_EQ(value_of(CODE(0x0E, 1, 0, 0, 0, 0, 0, 0, 0x80)),
           UINT64_C(0x8000000000000001));
  CHECK_EQ(value_of(CODE(0x0F, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)),
           -2);
  CHECK_EQ(value_of(CODE(0x10, 0x80, 0x01)), 128);
  CHECK_EQ(value_of(CODE(0x11, 0x7E)), -2);
}

static void registers_are_read_if_they_are_known(void) {
  CHECK_EQ(value_of(CODE(0x70 + KNOWN, 8)), 1008);
  CHECK_EQ(value_of(CODE(0x70 + KNOWN, 0x78)), 992);
  CHECK_EQ(value_of(CODE(0x92, KNOWN, 8)), 1008);
  CHECK_EQ(value_of(CODE(0x92, ST_UNWIND_PC, 1)), 0x40001C);
  CHECK(fails(CODE(0x70 + UNKNOWN, 0)));
  CHECK(fails(CODE(0x92, 100, 0)));
  CHECK(fails(CODE(0x92, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0)));
}

static void memory_is_read_if_it_is_there(void) {
  CHECK_EQ(value_of(CODE(0x0A, 0x00, 0x10, 0x06)), 0x8877665544332211);
  CHECK_EQ(value_of(CODE(0x0A, 0x08, 0x10, 0x94, 1)), 0x99);
  CHECK_EQ(value_of(CODE(0x0A, 0x00, 0x10, 0x94, 3)), 0x332211);
  CHECK(fails(CODE(0x0A, 0x08, 0x10, 0x06)));
  CHECK(fails(CODE(0x30, 0x06)));
  CHECK(fails(CODE(0x0A, 0x00, 0x10, 0x94, 0)));
  CHECK(fails(CODE(0x0A, 0x00, 0x10, 0x94, 9)));
}

static void numbers_are_computed(void) {
  CHECK_EQ(value_of(CODE(0x3A, 0x37, 0x1A)), 2);      /* 10 & 7 */
  CHECK_EQ(value_of(CODE(0x3A, 0x37, 0x21)), 15);     /* 10 | 7 */
  CHECK_EQ(value_of(CODE(0x3A, 0x37, 0x27)), 13);     /* 10 ^ 7 */
  CHECK_EQ(value_of(CODE(0x3A, 0x37, 0x22)), 17);     /* 10 + 7 */
  CHECK_EQ(value_of(CODE(0x37, 0x3A, 0x1C)), -3);     /* 7 - 10 */
  CHECK_EQ(value_of(CODE(0x3A, 0x37, 0x1E)), 70);     /* 10 * 7 */
  CHECK_EQ(value_of(CODE(0x3A, 0x23, 0x87, 1)), 145); /* 10 + 135 */
  CHECK_EQ(value_of(CODE(0x37, 0x1F)), -7);
  CHECK_EQ(value_of(CODE(0x37, 0x20)), ~7);
}

static void shifts_may_be_of_any_width(void) {
  CHECK_EQ(value_of(CODE(0x37, 0x33, 0x24)), 56);
  CHECK_EQ(value_of(CODE(0x37, 0x08, 64, 0x24)), 0);
  CHECK_EQ(value_of(CODE(0x09, 0xF0, 0x32, 0x26)), -4);
  CHECK_EQ(value_of(CODE(0x09, 0xF0, 0x30, 0x26)), -16);
  CHECK_EQ(value_of(CODE(0x09, 0xF0, 0x08, 200, 0x26)), -1);
  CHECK_EQ(value_of(CODE(0x09, 0xF0, 0x08, 60, 0x25)), 15);
  CHECK_EQ(value_of(CODE(0x09, 0xF0, 0x08, 64, 0x25)), 0);
  CHECK_EQ(value_of(CODE(0x48, 0x33, 0x26)), 3);
}

static void comparisons_are_signed(void) {
  static const uint8_t kExpected[][3] = {
      /* -1 and 1; 1 and 1; 1 and -1 */
      {0, 1, 0}, /* eq */
      {0, 1, 1}, /* ge */
      {0, 0, 1}, /* gt */
      {1, 1, 0}, /* le */
      {1, 0, 0}, /* lt */
      {1, 0, 1}, /* ne */
  };
  for (uint8_t i = 0; i < 6; i++) {
    uint8_t op = (uint8_t)(0x29 + i);
    CHECK_EQ(value_of(CODE(0x09, 0xFF, 0x31, op)), kExpected[i][0]);
    CHECK_EQ(value_of(CODE(0x31, 0x31, op)), kExpected[i][1]);
    CHECK_EQ(value_of(CODE(0x31, 0x09, 0xFF, op)), kExpected[i][2]);
  }
}

static void numbers_of_the_stack_are_moved(void) {
  CHECK_EQ(value_of(CODE(0x35, 0x12, 0x22)), 10);            /* dup */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x13)), 5);             /* drop */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x14)), 5);             /* over */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x37, 0x15, 2)), 5);    /* pick */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x16)), 5);             /* swap */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x37, 0x17)), 6);       /* rot: 7 5 6 */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x37, 0x17, 0x13)), 5); /* 7 5 */
  CHECK_EQ(value_of(CODE(0x35, 0x36, 0x37, 0x17, 0x13, 0x13)), 7);
  CHECK_EQ(value_of(CODE(0x35, 0x96)), 5); /* nop */
}

static void jumps_go_forward_only(void) {
  CHECK_EQ(value_of(CODE(0x35, 0x2F, 1, 0, 0x36)), 5);
  CHECK_EQ(value_of(CODE(0x35, 0x31, 0x28, 1, 0, 0x36)), 5);
  CHECK_EQ(value_of(CODE(0x35, 0x30, 0x28, 1, 0, 0x36)), 6);
  CHECK(fails(CODE(0x35, 0x2F, 0xFD, 0xFF)));
  CHECK(fails(CODE(0x35, 0x31, 0x28, 0xFC, 0xFF)));
  CHECK(fails(CODE(0x35, 0x2F, 100, 0)));
}

static void first_number_is_on_the_stack(void) {
  uint64_t cfa = 500, result = 0;
  CHECK(evaluate(CODE(0x38, 0x1C), &cfa, &result));
  CHECK_EQ(result, 492);
  CHECK(evaluate(CODE(0x13, 0x35), &cfa, &result));
  CHECK_EQ(result, 5);
  CHECK(fails(CODE(0x38, 0x1C)));
}

static void stub_has_pushed_a_number_or_not(void) {
  static const uint8_t kStub[] = {0x70 + ST_UNWIND_SP,
                                  8,
                                  0x92,
                                  ST_UNWIND_PC,
                                  0,
                                  0x3F,
                                  0x1A,
                                  0x3B,
                                  0x2A,
                                  0x33,
                                  0x24,
                                  0x22};
  struct st_expression e = {.size = sizeof kStub};
  struct st_registers r = kRegisters;
  uint64_t cfa = 0;
  memcpy(e.bytes, kStub, sizeof kStub);
  CHECK(st_expression_evaluate(&e, &kMemory, &r, NULL, &cfa));
  CHECK_EQ(cfa, MEMORY + 16);
  r.pc = 0x40001A;
  CHECK(st_expression_evaluate(&e, &kMemory, &r, NULL, &cfa));
  CHECK_EQ(cfa, MEMORY + 8);
}

static void stack_has_limits(void) {
  CHECK_EQ(value_of(CODE(0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37)), 7);
  CHECK(fails(CODE(0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38)));
  CHECK(fails(CODE(0x96)));
  CHECK(fails(CODE(0x13)));
  CHECK(fails(CODE(0x12)));
  CHECK(fails(CODE(0x35, 0x14)));
  CHECK(fails(CODE(0x35, 0x15, 1)));
  CHECK(fails(CODE(0x35, 0x15, 255)));
  CHECK(fails(CODE(0x35, 0x16)));
  CHECK(fails(CODE(0x35, 0x36, 0x17)));
  CHECK(fails(CODE(0x35, 0x22)));
}

static void unknown_and_cut_operations_fail(void) {
  CHECK(fails(CODE(0x31, 0x31, 0x1B))); /* div */
  CHECK(fails(CODE(0x31, 0x31, 0xFF)));
  CHECK(fails(CODE(0x03, 0, 0, 0, 0, 0, 0, 0, 0))); /* addr */
  CHECK(fails(CODE(0x31, 0x0C, 1, 2, 3)));
  CHECK(fails(CODE(0x31, 0x10, 0x80)));
  CHECK(fails(CODE(0x31, 0x70 + KNOWN)));
  CHECK(fails(CODE(0x31, 0x2F, 0)));
}

static void long_expressions_are_passed_over(void) {
  uint8_t code[20];
  memset(code, 0x96, sizeof code);
  code[0] = 0x35;
  CHECK_EQ(value_of(code, ST_EXPRESSION_MAX_BYTES), 5);
  CHECK(fails(code, ST_EXPRESSION_MAX_BYTES + 1));
  CHECK(fails(code, 0));
}

static void size_beyond_the_table_is_bad(void) {
  static const uint8_t kCut[] = {3, 0x31, 0x31};
  struct st_dwarf_cursor c = {.at = kCut, .end = kCut + sizeof kCut};
  CHECK_EQ(st_expression_take(&c).size, 0);
  CHECK(c.is_bad && c.at == c.end);
}

int main(void) {
  RUN(constants_have_a_size_and_a_sign);
  RUN(registers_are_read_if_they_are_known);
  RUN(memory_is_read_if_it_is_there);
  RUN(numbers_are_computed);
  RUN(shifts_may_be_of_any_width);
  RUN(comparisons_are_signed);
  RUN(numbers_of_the_stack_are_moved);
  RUN(jumps_go_forward_only);
  RUN(first_number_is_on_the_stack);
  RUN(stub_has_pushed_a_number_or_not);
  RUN(stack_has_limits);
  RUN(unknown_and_cut_operations_fail);
  RUN(long_expressions_are_passed_over);
  RUN(size_beyond_the_table_is_bad);
  return 0;
}
