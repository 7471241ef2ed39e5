/* Tests of the records of perf events. */
#include "perf_records.h"

static struct record_builder built;
static struct st_perf_record r;
static const uint8_t* at;

static bool next(bool has_stacks) {
  return st_perf_record_next(&at, built.data + built.size, has_stacks, &r);
}

static void sample_has_thread_time_counts_and_stack(void) {
  const uint64_t stack[] = {ST_PERF_USER_MARK, 0x1234, 0x5678};
  built.size = 0;
  put_sample(&built, 2, 10, 11, 99, stack, 3);
  at = built.data;
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_SAMPLE);
  CHECK_EQ(r.misc & ST_PERF_MODE, 2);
  CHECK_EQ(r.pid, 10);
  CHECK_EQ(r.tid, 11);
  CHECK_EQ(r.time, 99);
  CHECK_EQ(r.count_size, 1);
  CHECK_EQ(st_perf_word(r.counts, 0), 7);
  CHECK_EQ(r.stack_size, 3);
  CHECK_EQ(st_perf_word(r.stack, 2), 0x5678);
  CHECK(!next(true));
}

static void sample_without_stack_ends_behind_the_counts(void) {
  built.size = 0;
  put_sample(&built, 1, 1, 1, 5, NULL, 0);
  at = built.data;
  CHECK(next(false));
  CHECK_EQ(r.type, ST_PERF_SAMPLE);
  CHECK_EQ(r.stack_size, 0);
  at = built.data;
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
}

static void other_records_have_their_time_at_the_end(void) {
  built.size = 0;
  put_mapping(&built, 7, 0x4000, "/lib/x.so", 1);
  put_name(&built, ST_PERF_EXEC, 7, 8, "shop", 2);
  put_fork(&built, ST_PERF_FORK, 9, 7, 9, 3);
  put_lost(&built, 12, 4);
  at = built.data;
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_MAPPING);
  CHECK_EQ(r.address, 0x4000);
  CHECK_EQ(r.size, 0x1000);
  CHECK_EQ(r.offset, 0x2000);
  CHECK_EQ(r.protection, 5);
  CHECK_EQ(r.text_size, 9);
  CHECK(!memcmp(r.text, "/lib/x.so", 9));
  CHECK_EQ(r.time, 1);
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_NAME);
  CHECK(r.misc & ST_PERF_EXEC);
  CHECK_EQ(r.tid, 8);
  CHECK_EQ(r.text_size, 4);
  CHECK_EQ(r.time, 2);
  CHECK(next(true));
  CHECK_EQ(r.pid, 9);
  CHECK_EQ(r.parent, 7);
  CHECK_EQ(r.time, 3);
  CHECK(next(true));
  CHECK_EQ(r.lost, 12);
  CHECK_EQ(r.time, 4);
  CHECK(!next(true));
}

static void numbers_beyond_the_record_are_damage(void) {
  const uint64_t stack[] = {1};
  built.size = 0;
  put_sample(&built, 2, 1, 1, 1, stack, 1);
  uint64_t huge = UINT64_MAX / 8;
  memcpy(built.data + 24, &huge, sizeof huge); /* The number of counts. */
  at = built.data;
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
  CHECK(!r.counts);
  CHECK(!next(true));
}

static void record_that_is_cut_ends_the_records(void) {
  built.size = 0;
  put_name(&built, 0, 1, 1, "x", 1);
  built.size--;
  at = built.data;
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
  CHECK(!next(true));
  built.size = 3;
  at = built.data;
  CHECK(next(true));
  CHECK_EQ(r.type, ST_PERF_DAMAGED);
  CHECK(!next(true));
}

int main(void) {
  RUN(sample_has_thread_time_counts_and_stack);
  RUN(sample_without_stack_ends_behind_the_counts);
  RUN(other_records_have_their_time_at_the_end);
  RUN(numbers_beyond_the_record_are_damage);
  RUN(record_that_is_cut_ends_the_records);
  return 0;
}
