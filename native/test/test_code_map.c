/* Tests of the code map: walks by rules that are kept. */
#include "probes/code_map.h"

#include "check.h"
#include "unwind_tables.h"

static int table_reads;

static bool read_counted(void* self, uint64_t address, void* to, size_t size) {
  table_reads++;
  return read_fake(self, address, to, size);
}

static const struct st_memory kTables = {.read = read_counted};

static struct st_registers at(uint64_t pc) {
  struct st_registers r = {.pc = pc, .known = UINT64_C(1) << ST_UNWIND_SP};
  r.values[ST_UNWIND_SP] = STACK;
  return r;
}

static int walk(struct st_code_map* m, uint64_t pc, struct st_c_call* calls,
                bool* is_complete) {
  struct st_registers r = at(pc);
  return st_code_map_walk(m, &kTables, &kMemory, &r, calls, 8, is_complete);
}

/* The first function has called itself once; the second one is the outermost. */
static struct st_code_map* make_map(void) {
  uint64_t loop = CODE + 200;
  make_tables("", 0);
  stack[0] = CODE + 5;
  stack[1] = CODE + 205;
  struct st_code_map* m = st_code_map_create();
  CHECK(m);
  CHECK(!st_code_map_has_loop(m));
  st_code_map_set(m, &kCode, 1, &loop, 1);
  CHECK(st_code_map_has_loop(m));
  return m;
}

static void calls_are_named_by_the_start_of_their_function(void) {
  struct st_code_map* m = make_map();
  struct st_c_call calls[8];
  bool is_complete = false;
  CHECK_EQ(walk(m, CODE + 7, calls, &is_complete), 3);
  CHECK(is_complete);
  CHECK_EQ(calls[0].function, CODE);
  CHECK_EQ(calls[1].function, CODE);
  CHECK_EQ(calls[2].function, CODE + 200);
  CHECK(!calls[1].is_loop && calls[2].is_loop);
  st_code_map_destroy(m);
}

static void rules_are_made_once(void) {
  struct st_code_map* m = make_map();
  struct st_c_call calls[8];
  bool is_complete;
  walk(m, CODE + 7, calls, &is_complete);
  table_reads = 0;
  CHECK_EQ(walk(m, CODE + 7, calls, &is_complete), 3);
  CHECK_EQ(table_reads, 0);
  st_code_map_set(m, &kCode, 1, NULL, 0);
  CHECK_EQ(walk(m, CODE + 7, calls, &is_complete), 3);
  CHECK(table_reads > 0);
  CHECK(!calls[2].is_loop);
  st_code_map_destroy(m);
}

static void interrupted_call_may_be_at_its_first_instruction(void) {
  struct st_code_map* m = make_map();
  struct st_c_call calls[8];
  bool is_complete = false;
  mark_signal_frames();
  stack[0] = CODE + 200;
  CHECK_EQ(walk(m, CODE + 7, calls, &is_complete), 2);
  CHECK(is_complete);
  CHECK_EQ(calls[1].function, CODE + 200);
  st_code_map_destroy(m);
}

/* At +400 code has no table.  Its return address is on top of the stack. */
static void code_without_rules_is_taken_for_a_stub(void) {
#if !defined(__aarch64__)
  struct st_code_map* m = make_map();
  struct st_c_call calls[8];
  bool is_complete = false;
  CHECK_EQ(walk(m, CODE + 400, calls, &is_complete), 3);
  CHECK(is_complete);
  CHECK_EQ(calls[0].function, CODE + 400);
  CHECK_EQ(calls[1].function, CODE);
  CHECK_EQ(st_code_map_unknown(m), 0);
  st_code_map_destroy(m);
#endif
}

static void stub_is_no_caller_and_has_a_caller_in_code(void) {
  struct st_code_map* m = make_map();
  struct st_c_call calls[8];
  bool is_complete = true;
  stack[0] = 0;
  CHECK_EQ(walk(m, CODE + 400, calls, &is_complete), 1);
  CHECK(!is_complete);
  stack[0] = CODE + 400;
  CHECK_EQ(walk(m, CODE + 7, calls, &is_complete), 2);
  CHECK(!is_complete);
  CHECK_EQ(st_code_map_unknown(m), 0);
  st_code_map_destroy(m);
}

static void address_without_code_ends_the_walk_and_is_counted(void) {
  struct st_code_map* m = make_map();
  struct st_c_call calls[8];
  bool is_complete = true;
  stack[0] = 99;
  CHECK_EQ(walk(m, CODE + 7, calls, &is_complete), 1);
  CHECK(!is_complete);
  CHECK_EQ(st_code_map_unknown(m), 1);
  CHECK_EQ(walk(m, CODE + 5000, calls, &is_complete), 0);
  CHECK_EQ(st_code_map_unknown(m), 2);
  st_code_map_destroy(m);
}

int main(void) {
  RUN(calls_are_named_by_the_start_of_their_function);
  RUN(rules_are_made_once);
  RUN(interrupted_call_may_be_at_its_first_instruction);
  RUN(code_without_rules_is_taken_for_a_stub);
  RUN(stub_is_no_caller_and_has_a_caller_in_code);
  RUN(address_without_code_ends_the_walk_and_is_counted);
  return 0;
}
