/* Tests of the records of perf events. */
#include "perf_records.h"

static struct record_builder built;
static struct st_perf_record r;
static const uint8_t* at;

static bool next(unsigned members) {
  return st_perf_record_next(&at, built.data + built.size, members, &r);
}

static void sample_has_thread_time_counts_and_stack(void) {
  const uint64_t stack[] = {ST_PERF_USER_MARK, 0x1234, 0x5678};
  built.size = 0;
  put_sample(&built, 2, 10, 11, 99, stack, 3);
  at = built.data;
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_SAMPLE);
  CHECK_EQ(r.misc & ST_PERF_MODE, 2);
  CHECK_EQ(r.pid, 10);
  CHECK_EQ(r.tid, 11);
  CHECK_EQ(r.time, 99);
  CHECK_EQ(r.count_size, 1);
  CHECK_EQ(st_perf_word(r.counts, 0), 7);
  CHECK_EQ(r.stack_size, 3);
  CHECK_EQ(st_perf_word(r.stack, 2), 0x5678);
  CHECK(!next(ST_PERF_CALL_CHAIN));
}

static void sample_without_stack_ends_behind_the_counts(void) {
  built.size = 0;
  put_sample(&built, 1, 1, 1, 5, NULL, 0);
  at = built.data;
  CHECK(next(0));
  CHECK_EQ(r.type, ST_PERF_SAMPLE);
  CHECK_EQ(r.stack_size, 0);
  at = built.data;
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
}

static void sample_has_the_registers_and_the_stack_of_the_program(void) {
  enum { ALL = ST_PERF_CALL_CHAIN | ST_PERF_USER_STACK };
  const uint64_t stack[] = {1, 2, 3};
  struct st_registers registers;
  built.size = 0;
  put_user_sample(&built, 10, 5, 0x1234, 0x8000, stack, sizeof stack, 16);
  put_user_sample(&built, 10, 6, 0x1234, 0x8000, stack, 0, 0);
  put_user_sample(&built, 10, 7, 0x1234, 0x8000, stack, sizeof stack, 25);
  at = built.data;
  CHECK(next(ALL));
  CHECK_EQ(r.type, ST_PERF_SAMPLE);
  CHECK_EQ(r.stack_size, 1);
  CHECK_EQ(r.memory_size, 16);
  CHECK(!memcmp(r.memory, stack, 16));
  st_perf_registers(r.registers, &registers);
  CHECK_EQ(registers.pc, 0x1234);
  CHECK_EQ(registers.values[ST_UNWIND_SP], 0x8000);
  CHECK_EQ(registers.values[0], 100); /* ax, x0 */
#if defined(__x86_64__)
  CHECK_EQ(registers.values[1], 103); /* dx */
  CHECK_EQ(registers.values[6], 106); /* bp */
  CHECK_EQ(registers.values[8], 109); /* r8 */
#endif
  CHECK(next(ALL));
  CHECK_EQ(r.time, 6);
  CHECK_EQ(r.memory_size, 0);
  CHECK(next(ALL)); /* More bytes are valid than there are. */
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
}

static void threads_of_the_kernel_have_no_registers(void) {
  enum { ALL = ST_PERF_CALL_CHAIN | ST_PERF_USER_STACK };
  built.size = 0;
  put_sample(&built, 1, 0, 1, 5, (const uint64_t[]){1}, 1);
  put_u64(&built, 0); /* The ABI. */
  put_u64(&built, 0);
  record_end(&built);
  at = built.data;
  CHECK(next(ALL));
  CHECK_EQ(r.type, ST_PERF_SAMPLE);
  CHECK(!r.registers);
}

static void other_records_have_their_time_at_the_end(void) {
  built.size = 0;
  put_mapping(&built, 7, 0x4000, "/lib/x.so", 1);
  put_name(&built, ST_PERF_EXEC, 7, 8, "shop", 2);
  put_fork(&built, ST_PERF_FORK, 9, 7, 9, 3);
  put_lost(&built, 12, 4);
  at = built.data;
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_MAPPING);
  CHECK_EQ(r.address, 0x4000);
  CHECK_EQ(r.size, 0x1000);
  CHECK_EQ(r.offset, 0x2000);
  CHECK_EQ(r.protection, 5);
  CHECK_EQ(r.text_size, 9);
  CHECK(!memcmp(r.text, "/lib/x.so", 9));
  CHECK_EQ(r.time, 1);
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_NAME);
  CHECK(r.misc & ST_PERF_EXEC);
  CHECK_EQ(r.tid, 8);
  CHECK_EQ(r.text_size, 4);
  CHECK_EQ(r.time, 2);
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.pid, 9);
  CHECK_EQ(r.parent, 7);
  CHECK_EQ(r.time, 3);
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.lost, 12);
  CHECK_EQ(r.time, 4);
  CHECK(!next(ST_PERF_CALL_CHAIN));
}

static void numbers_beyond_the_record_are_damage(void) {
  const uint64_t stack[] = {1};
  built.size = 0;
  put_sample(&built, 2, 1, 1, 1, stack, 1);
  uint64_t huge = UINT64_MAX / 8;
  memcpy(built.data + 24, &huge, sizeof huge); /* The number of counts. */
  at = built.data;
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
  CHECK(!r.counts);
  CHECK(!next(ST_PERF_CALL_CHAIN));
}

static void record_that_is_cut_ends_the_records(void) {
  built.size = 0;
  put_name(&built, 0, 1, 1, "x", 1);
  built.size--;
  at = built.data;
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
  CHECK(!next(ST_PERF_CALL_CHAIN));
  built.size = 3;
  at = built.data;
  CHECK(next(ST_PERF_CALL_CHAIN));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
  CHECK(!next(ST_PERF_CALL_CHAIN));
}

int main(void) {
  RUN(sample_has_thread_time_counts_and_stack);
  RUN(sample_without_stack_ends_behind_the_counts);
  RUN(sample_has_the_registers_and_the_stack_of_the_program);
  RUN(threads_of_the_kernel_have_no_registers);
  RUN(other_records_have_their_time_at_the_end);
  RUN(numbers_beyond_the_record_are_damage);
  RUN(record_that_is_cut_ends_the_records);
  return 0;
}
