/* Tests of exception frames: rules by the place in a function, and tables that
 * are damaged. */
#include "probes/eh_frame.h"

#include "check.h"
#include "unwind_tables.h"

/* push; at +4 the frame has 16 bytes and a saved register, from +8 on the saved
 * register is the base of the frame; from +12 on the rules are the first ones. */
static const char kFrame[] = {
    0x44, 0x0E, 16,    (char)(0x80 | SAVED), 2, /* advance, offset, saved */
    0x0A,                                       /* remember */
    0x44, 0x0D, SAVED,                          /* advance, by register */
    0x44, 0x0B,                                 /* advance, restore */
};

static struct st_registers at(uint64_t pc) {
  struct st_registers r = {.pc = pc, .known = UINT64_C(1) << ST_UNWIND_SP};
  r.values[ST_UNWIND_SP] = STACK;
  for (int i = 0; i < STACK_WORDS; i++)
    stack[i] = (uint64_t)(1000 + i);
  return r;
}

static bool step(struct st_registers* r) {
  return st_eh_frame_step(&kMemory, TABLES, r);
}

static void caller_is_found_at_the_entry(void) {
  make_tables(kFrame, sizeof kFrame);
  struct st_registers r = at(CODE);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1000);
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 8);
  CHECK(!(r.known >> SAVED & 1));
}

static void saved_registers_are_recovered(void) {
  make_tables(kFrame, sizeof kFrame);
  struct st_registers r = at(CODE + 4);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1001);
  CHECK_EQ(r.values[SAVED], 1000);
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 16);
}

static void frame_may_be_relative_to_a_known_register(void) {
  make_tables(kFrame, sizeof kFrame);
  struct st_registers r = at(CODE + 8);
  CHECK(!step(&r));
  r.known |= 1 << SAVED;
  r.values[SAVED] = STACK + 16;
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1003);
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 32);
}

static void popped_register_has_its_value(void) {
  static const char kEpilogue[] = {0x44, 0x0E, 8, (char)(0x80 | SAVED), 2};
  make_tables(kEpilogue, sizeof kEpilogue);
  struct st_registers r = at(CODE + 4); /* It was saved at STACK - 8. */
  r.known |= 1 << SAVED;
  r.values[SAVED] = 77;
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1000);
  CHECK_EQ(r.values[SAVED], 77);
  CHECK(r.known >> SAVED & 1);
}

static void remembered_rules_are_restored(void) {
  make_tables(kFrame, sizeof kFrame);
  struct st_registers r = at(CODE + 12);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1001);
}

static void return_address_belongs_to_the_code_before_it(void) {
  make_tables(kFrame, sizeof kFrame);
  struct st_registers r = at(CODE + 4);
  r.is_call = true;
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1000);
  CHECK(r.is_call);
}

static void interrupted_code_belongs_to_its_own_address(void) {
  make_tables(kFrame, sizeof kFrame);
  mark_signal_frames();
  struct st_registers r = at(CODE + 4);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1001);
  CHECK(!r.is_call);
}

static void outermost_function_has_no_caller(void) {
  make_tables(kFrame, sizeof kFrame);
  struct st_registers r = at(CODE + 200);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 0);
}

static void code_without_tables_ends_the_search(void) {
  make_tables(kFrame, sizeof kFrame);
  uint64_t places[] = {CODE - 1, CODE + 100, CODE + 300, 0, UINT64_MAX};
  for (int i = 0; i < 5; i++) {
    struct st_registers r = at(places[i]);
    CHECK(!step(&r));
    CHECK_EQ(r.pc, places[i]);
  }
}

/* The stub of a library's call: from its byte 11 on it has pushed a number. */
static const char kStub[] = {
    0x0F, 12,         0x70 + ST_UNWIND_SP,
    8,    (char)0x92, ST_UNWIND_PC,
    0,    0x3F,       0x1A,
    0x3B, 0x2A,       0x33,
    0x24, 0x22,
};

static void frame_may_be_an_expression(void) {
  make_tables(kStub, sizeof kStub);
  struct st_registers r = at(CODE + 10);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1000);
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 8);
  r = at(CODE + 11);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1001);
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 16);
}

static void frame_may_be_a_register_again(void) {
  static const char kAgain[] = {
      0x0A,         0x0F, 2,
      0x70 + SAVED, 0, /* remember, by expression */
      0x44,         0x0C, ST_UNWIND_SP,
      16, /* advance, by register */
      0x44,         0x0F, 1,
      0x30,               /* advance, by expression */
      0x44,         0x0B, /* advance, restore */
  };
  make_tables(kAgain, sizeof kAgain);
  struct st_registers r = at(CODE);
  CHECK(!step(&r));
  r = at(CODE + 4);
  CHECK(step(&r));
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 16);
  r = at(CODE + 8);
  CHECK(!step(&r));
  r = at(CODE + 12);
  CHECK(step(&r));
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 8);
}

static void registers_may_be_expressions(void) {
  /* Saved below the frame; from +4 on its value is that address. */
  static const char kBelow[] = {
      0x0E, 32,   0x10,  SAVED, 3,    0x08, 16,   0x1C,
      0x44, 0x16, SAVED, 3,     0x08, 16,   0x1C,
  };
  make_tables(kBelow, sizeof kBelow);
  struct st_registers r = at(CODE);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1003);
  CHECK(r.known >> SAVED & 1);
  CHECK_EQ(r.values[SAVED], 1002);
  r = at(CODE + 4);
  CHECK(step(&r));
  CHECK_EQ(r.values[SAVED], STACK + 16);
}

static void register_is_unknown_if_its_expression_fails(void) {
  static const char kUnknown[] = {
      0x10, SAVED, 2, 0x70 + SAVED + 3, 0, 0x16, SAVED + 2, 1, 0x13};
  make_tables(kUnknown, sizeof kUnknown);
  struct st_registers r = at(CODE);
  r.known |= 1 << SAVED | 1 << (SAVED + 2);
  CHECK(step(&r));
  CHECK_EQ(r.pc, 1000);
  CHECK(!(r.known >> SAVED & 5));
}

/* Checks that instructions have no caller, and leave the registers. */
static void check_end(const char* instructions, size_t size) {
  make_tables(instructions, size);
  struct st_registers r = at(CODE);
  CHECK(!step(&r));
  CHECK_EQ(r.pc, CODE);
}

static void expression_that_fails_ends_the_search(void) {
  static const char kReturn[] = {0x10, RETURN_ADDRESS, 2, 0x70 + SAVED, 0};
  static const char kOutside[] = {0x10, SAVED, 2, 0x13, 0x30};
  static const char kNowhere[] = {0x0F, 2, 0x30, 0x06};
  static const char kLong[] = {0x0F, 16,   0x77, 8,    0x30, 0x13,
                               0x30, 0x13, 0x30, 0x13, 0x30, 0x13,
                               0x30, 0x13, 0x30, 0x13, 0x30, 0x13};
  check_end(kReturn, sizeof kReturn);
  check_end(kOutside, sizeof kOutside);
  check_end(kNowhere, sizeof kNowhere);
  check_end(kLong, sizeof kLong);
}

static void damaged_tables_end_the_search(void) {
  static const char kRestore[] = {0x0B};
  static const char kUnknown[] = {0x3F};
  static const char kLong[] = {0x0F, 127};
  check_end(kRestore, sizeof kRestore);
  check_end(kUnknown, sizeof kUnknown);
  check_end(kLong, sizeof kLong);
}

static void damage(const char* instructions, size_t size) {
  for (size_t place = 0; place < TABLES_BYTES; place++)
    for (int bit = 0; bit < 8; bit++) {
      make_tables(instructions, size);
      tables[place] ^= (uint8_t)(1 << bit);
      struct st_registers any = at(CODE + 8);
      any.known = ~UINT64_C(0);
      if (step(&any))
        CHECK(any.values[ST_UNWIND_SP] >= STACK);
    }
}

static void any_damaged_bit_is_survived(void) {
  damage(kFrame, sizeof kFrame);
  damage(kStub, sizeof kStub);
}

static void stub_returns_to_its_caller(void) {
  struct st_registers r = at(CODE);
#if defined(__aarch64__)
  CHECK(!st_eh_frame_leave_stub(&kMemory, &r));
  r.known |= 1 << 30;
  r.values[30] = 1000 | UINT64_C(5) << 48;
  CHECK(st_eh_frame_leave_stub(&kMemory, &r));
  CHECK(!(r.known >> 30 & 1));
#else
  CHECK(st_eh_frame_leave_stub(&kMemory, &r));
  CHECK_EQ(r.values[ST_UNWIND_SP], STACK + 8);
#endif
  CHECK_EQ(r.pc, 1000);
  CHECK(r.is_call);
}

static void stack_ends_where_nothing_is_known(void) {
  uint64_t pcs[ST_NATIVE_MAX_DEPTH];
  make_tables(kFrame, sizeof kFrame);
  at(0);
  stack[1] = CODE + 1; /* A call at the start of the function. */
  stack[2] = CODE + 201;
  CHECK_EQ(st_native_stack(&kMemory, &kCode, 1, CODE + 4, STACK, pcs), 3);
  CHECK_EQ(pcs[0], CODE + 4);
  CHECK_EQ(pcs[1], CODE);
  CHECK_EQ(pcs[2], CODE + 200);
  CHECK_EQ(st_native_stack(&kMemory, &kCode, 1, 7, STACK, pcs), 0);
}

int main(void) {
  RUN(caller_is_found_at_the_entry);
  RUN(saved_registers_are_recovered);
  RUN(frame_may_be_relative_to_a_known_register);
  RUN(popped_register_has_its_value);
  RUN(remembered_rules_are_restored);
  RUN(return_address_belongs_to_the_code_before_it);
  RUN(outermost_function_has_no_caller);
  RUN(code_without_tables_ends_the_search);
  RUN(interrupted_code_belongs_to_its_own_address);
  RUN(frame_may_be_an_expression);
  RUN(frame_may_be_a_register_again);
  RUN(registers_may_be_expressions);
  RUN(register_is_unknown_if_its_expression_fails);
  RUN(expression_that_fails_ends_the_search);
  RUN(damaged_tables_end_the_search);
  RUN(any_damaged_bit_is_survived);
  RUN(stub_returns_to_its_caller);
  RUN(stack_ends_where_nothing_is_known);
  return 0;
}
