/* Tests of the unwinder: calls from registers and a copy of a stack. */
#include "probes/perf_unwinder.h"

#include "perf_records.h"
#include "unwind_tables.h"

enum { SPACE = 5, BIAS = 0x500000, MAIN = CODE + 200 };

static const struct st_elf_file kFile = {.tables = TABLES,
                                         .table_bytes = tables,
                                         .table_size = sizeof tables};
/* At +4 the frame has 16 bytes. */
static const char kFrame[] = {0x44, 0x0E, 16};
static struct st_perf_unwinder* u;
static struct record_builder built;
static uint64_t pcs[8];
static struct st_perf_unwound found;

static void add(uint64_t start, uint64_t end, const struct st_elf_file* file) {
  CHECK(st_perf_unwinder_add(
      u, &(struct st_perf_code){SPACE, start, end, BIAS, file}));
}

static void start(void) {
  u = st_perf_unwinder_create();
  CHECK(u);
  make_tables(kFrame, sizeof kFrame);
  add(BIAS + CODE, BIAS + CODE + 1000, &kFile);
}

/* Unwinds a sample at pc with `valid` bytes of the stack. */
static void unwind(uint64_t pc, uint64_t valid, uint32_t room) {
  struct st_perf_record r;
  const uint8_t* at = built.data;
  built.size = 0;
  put_user_sample(&built, 1, 1, pc, STACK, stack, sizeof stack, valid);
  CHECK(st_perf_record_next(&at, built.data + built.size,
                            ST_PERF_CALL_CHAIN | ST_PERF_USER_STACK, &r));
  found = st_perf_unwind(u, SPACE, &r, pcs, room);
}

static void end(void) {
  st_perf_unwinder_destroy(u);
}

static void calls_are_found_up_to_the_outermost(void) {
  start();
  stack[1] = BIAS + CODE + 1;
  stack[2] = BIAS + MAIN + 1;
  unwind(BIAS + CODE + 4, sizeof stack, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_COMPLETE);
  CHECK_EQ(found.depth, 3);
  CHECK_EQ(pcs[0], BIAS + CODE + 4);
  CHECK_EQ(pcs[1], BIAS + CODE); /* The call before the return address. */
  CHECK_EQ(pcs[2], BIAS + MAIN);
  end();
}

static void unknown_code_is_named_and_can_be_added(void) {
  start();
  stack[0] = 0x9001;
  unwind(BIAS + CODE, sizeof stack, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_CODE);
  CHECK_EQ(found.missing, 0x9000);
  CHECK_EQ(found.depth, 2);
  CHECK_EQ(pcs[1], 0x9000);
  add(0x9000, 0xA000, NULL);
  unwind(BIAS + CODE, sizeof stack, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_TABLES);
  CHECK_EQ(found.missing, 0);
  CHECK_EQ(found.depth, 2);
  end();
}

static void stack_that_ends_early_has_its_innermost_calls(void) {
  start();
  stack[0] = stack[1] = BIAS + CODE + 1;
  unwind(BIAS + CODE, 12, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_MEMORY);
  CHECK_EQ(found.depth, 2);
  unwind(BIAS + CODE, sizeof stack, 1);
  CHECK_EQ(found.error, ST_PERF_UNWIND_DEPTH);
  CHECK_EQ(found.depth, 1);
  end();
}

static void no_call_has_an_address_of_the_kernel(void) {
  start();
  stack[0] = ST_PERF_KERNEL_MARK;
  unwind(BIAS + CODE, sizeof stack, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_MEMORY);
  CHECK_EQ(found.depth, 1);
  end();
}

static void stub_is_left_if_its_caller_is_in_known_code(void) {
  start();
  add(0x9000, 0xA000, NULL);
#if defined(__x86_64__)
  stack[0] = BIAS + MAIN + 1;
  unwind(0x9000, sizeof stack, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_COMPLETE);
  CHECK_EQ(found.depth, 2);
  stack[0] = 0x7001;
  unwind(0x9000, sizeof stack, 8);
  CHECK_EQ(found.missing, 0x7000);
  CHECK_EQ(found.depth, 1);
#endif
  end();
}

static void code_belongs_to_its_space_and_replaces_what_it_overlaps(void) {
  start();
  add(0x2000, 0x3000, NULL);
  add(0x3000, 0x4000, NULL);
  CHECK(st_perf_unwinder_add(
      u, &(struct st_perf_code){SPACE + 1, 0x5000, 0x6000, 0, NULL}));
  unwind(0x5000, 0, 8);
  CHECK_EQ(found.missing, 0x5000);
  add(0x2800, 0x3800, NULL);
  unwind(0x2000, 0, 8);
  CHECK_EQ(found.missing, 0x2000);
  unwind(0x3900, 0, 8);
  CHECK_EQ(found.missing, 0x3900);
  unwind(0x2900, 0, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_TABLES);
  st_perf_unwinder_clear(u);
  unwind(0x2900, 0, 8);
  CHECK_EQ(found.missing, 0x2900);
  end();
}

static void more_code_than_the_limit_replaces_all(void) {
  start();
  for (uint64_t i = 0; i < ST_PERF_MAX_CODE; i++)
    add(i << 30 | 1 << 29, (i << 30 | 1 << 29) + 16, NULL);
  unwind(BIAS + MAIN, 0, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_CODE);
  unwind((ST_PERF_MAX_CODE - UINT64_C(1)) << 30 | 1 << 29, 0, 8);
  CHECK_EQ(found.error, ST_PERF_UNWIND_TABLES);
  end();
}

int main(void) {
  RUN(calls_are_found_up_to_the_outermost);
  RUN(unknown_code_is_named_and_can_be_added);
  RUN(stack_that_ends_early_has_its_innermost_calls);
  RUN(no_call_has_an_address_of_the_kernel);
  RUN(stub_is_left_if_its_caller_is_in_known_code);
  RUN(code_belongs_to_its_space_and_replaces_what_it_overlaps);
  RUN(more_code_than_the_limit_replaces_all);
  return 0;
}
