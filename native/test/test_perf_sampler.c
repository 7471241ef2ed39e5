/* Tests of the sampler: from records to packets. */
#include "probes/perf_sampler.h"

#include "perf_records.h"
#include "text_output.h"
#include "unwind_tables.h"

static struct record_builder built;
static struct st_perf_sampler* s;

static void start(unsigned members) {
  s = st_perf_sampler_create(1, members, 1 << 16, 100);
  CHECK(s);
  built.size = 0;
}

static void end(void) {
  st_perf_sampler_destroy(s);
}

static void give(uint32_t cpu) {
  st_perf_sampler_add_records(s, cpu, built.data, built.size);
  st_perf_sampler_sort(s);
}

static enum st_perf_stop next(void) {
  return st_perf_sampler_next(s, output_begin());
}

static void sample_is(const char* fields) {
  char expected[200];
  CHECK_EQ(next(), ST_PERF_PACKET);
  st_message_finalize(&output_root);
  struct st_decoder d;
  struct st_field f;
  char* text = expected;
  st_decoder_init(&d, output, output_root.size);
  while (st_decoder_next(&d, &f))
    if (f.number == 66)
      text = form(text, f.data, f.size, 0);
  if (strcmp(expected, fields) != 0)
    fprintf(stderr, "got      %s\nexpected %s\n", expected, fields);
  CHECK(!strcmp(expected, fields));
}

static void sample_without_stacks_is_a_packet(void) {
  start(0);
  put_sample(&built, 2, 10, 11, 99, NULL, 0);
  give(3);
  CHECK_EQ(next(), ST_PERF_PACKET);
  st_message_finalize(&output_root);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, output, output_root.size);
  CHECK(st_decoder_next(&d, &f) && f.number == 8 && f.value == 99);
  CHECK(st_decoder_next(&d, &f) && f.number == 13 && f.value == 2);
  CHECK(st_decoder_next(&d, &f) && f.number == 66);
  CHECK_EQ(next(), ST_PERF_DONE);
  end();
}

static const uint64_t kStack[] = {ST_PERF_KERNEL_MARK, 0xFFFF0000, 0xFFFF0100,
                                  ST_PERF_USER_MARK,   0x1000,     0x2000};

static void owner_is_asked_about_threads_and_frames(void) {
  start(ST_PERF_CALL_CHAIN);
  put_sample(&built, 1, 10, 11, 99, kStack, 6);
  put_sample(&built, 1, 10, 11, 100, kStack, 6);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  CHECK_EQ(s->record.tid, 11);
  st_perf_sampler_decide(s, 10, true);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES);
  CHECK_EQ(s->unknown_count, 4);
  CHECK_EQ(s->unknown[0].space, ST_PERF_KERNEL_SPACE);
  CHECK_EQ(s->unknown[0].address, 0xFFFF0000);
  CHECK_EQ(s->unknown[1].address, 0xFFFF00FF); /* A return address. */
  CHECK(s->unknown[2].space != ST_PERF_KERNEL_SPACE);
  CHECK_EQ(s->unknown[2].address, 0x1000);
  CHECK_EQ(s->unknown[3].address, 0x1FFF);
  for (uint32_t i = 0; i < 4; i++)
    CHECK_EQ(st_perf_sampler_add_frame(s, s->unknown[i].space,
                                       s->unknown[i].address, 50 + i),
             i + 1);
  sample_is("1:0 2:10 3:11 5:1 6:7 4:1");
  sample_is("1:0 2:10 3:11 5:1 6:7 4:1");
  CHECK_EQ(next(), ST_PERF_DONE);
  uint32_t depth;
  const uint32_t* frames = st_stack_table_frames(s->table, 1, &depth);
  CHECK_EQ(depth, 4);
  CHECK_EQ(frames[0], 4); /* The outermost first. */
  CHECK_EQ(frames[3], 1);
  end();
}

static void frames_that_stay_unknown_are_told(void) {
  start(ST_PERF_CALL_CHAIN);
  put_sample(&built, 2, 10, 10, 1, kStack, 6);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  st_perf_sampler_decide(s, 10, true);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES);
  sample_is("1:0 2:10 3:10 5:2 6:7 18:2");
  CHECK_EQ(s->skipped, 1);
  end();
}

static void processes_out_of_scope_have_no_stacks(void) {
  start(ST_PERF_CALL_CHAIN);
  put_sample(&built, 2, 10, 10, 1, kStack, 6);
  put_sample(&built, 2, 10, 12, 2, kStack, 6);
  put_mapping(&built, 10, 0x1000, "/x", 3);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  st_perf_sampler_decide(s, 10, false);
  sample_is("1:0 2:10 3:10 5:2 6:7 18:4");
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  sample_is("1:0 2:10 3:12 5:2 6:7 18:4");
  CHECK_EQ(next(), ST_PERF_DONE);
  CHECK_EQ(s->skipped, 0);
  end();
}

static void what_runs_in_user_mode_has_no_kernel_stack(void) {
  const uint64_t none[] = {ST_PERF_KERNEL_MARK};
  start(ST_PERF_CALL_CHAIN);
  s->kernel_only = true;
  put_sample(&built, 2, 10, 10, 1, none, 1);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  st_perf_sampler_decide(s, 10, true);
  sample_is("1:0 2:10 3:10 5:2 6:7");
  end();
}

static void stacks_beyond_the_limit_of_a_read_are_told(void) {
  start(ST_PERF_CALL_CHAIN);
  s->max_stack_bytes = 60;
  put_sample(&built, 2, 10, 10, 1, kStack, 6);
  put_sample(&built, 2, 10, 10, 2, kStack, 6);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  st_perf_sampler_decide(s, 10, true);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES);
  for (uint32_t i = 0; i < s->unknown_count; i++)
    st_perf_sampler_add_frame(s, s->unknown[i].space, s->unknown[i].address, i);
  sample_is("1:0 2:10 3:10 5:2 6:7 4:1");
  sample_is("1:0 2:10 3:10 5:2 6:7 18:3");
  end();
}

static void stacks_are_unwound_with_the_code_that_the_owner_names(void) {
  static const struct st_elf_file kFile = {
      .tables = TABLES, .table_bytes = tables, .table_size = sizeof tables};
  start(ST_PERF_CALL_CHAIN | ST_PERF_USER_STACK);
  make_tables("", 0);
  stack[0] = CODE + 201;
  put_user_sample(&built, 10, 1, CODE, STACK, stack, sizeof stack, 16);
  put_user_sample(&built, 10, 2, 0x9000, STACK, stack, sizeof stack, 16);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  st_perf_sampler_decide(s, 10, true);
  CHECK_EQ(next(), ST_PERF_NEW_CODE);
  CHECK_EQ(s->missing, CODE);
  st_perf_sampler_add_code(s, CODE, CODE + 1000, 0, &kFile);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES);
  CHECK_EQ(s->unknown_count, 2);
  CHECK_EQ(s->unknown[0].address, CODE);
  CHECK_EQ(s->unknown[1].address, CODE + 200);
  for (uint32_t i = 0; i < 2; i++)
    st_perf_sampler_add_frame(s, s->unknown[i].space, s->unknown[i].address, i);
  sample_is("1:0 2:10 3:10 5:2 6:7 4:1");
  CHECK_EQ(next(), ST_PERF_NEW_CODE);
  CHECK_EQ(s->missing, 0x9000);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES); /* No file is there. */
  CHECK_EQ(s->unknown_count, 1);
  st_perf_sampler_add_frame(s, s->unknown[0].space, 0x9000, 9);
  sample_is("1:0 2:10 3:10 5:2 6:7 4:2 16:5");
  CHECK_EQ(next(), ST_PERF_DONE);
  end();
}

static void records_of_all_cpus_are_in_the_order_of_time(void) {
  static struct record_builder other;
  start(ST_PERF_CALL_CHAIN);
  other.size = 0;
  put_sample(&built, 2, 10, 10, 5, kStack, 6);
  put_name(&other, ST_PERF_EXEC, 10, 10, "new", 3);
  st_perf_sampler_decide(s, 10, false);
  st_perf_sampler_add_records(s, 0, built.data, built.size);
  st_perf_sampler_add_records(s, 1, other.data, other.size);
  st_perf_sampler_sort(s);
  CHECK_EQ(next(), ST_PERF_CHANGE);
  CHECK_EQ(s->record.type, ST_PERF_NAME);
  CHECK_EQ(s->cpu, 1);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD); /* exec: undecided again */
  end();
}

static void addresses_after_renewal_are_new(void) {
  const uint64_t stack[] = {ST_PERF_USER_MARK, 0x1000};
  start(ST_PERF_CALL_CHAIN);
  put_sample(&built, 2, 10, 10, 1, stack, 2);
  put_mapping(&built, 10, 0x1000, "/new", 2);
  put_sample(&built, 2, 10, 10, 3, stack, 2);
  give(0);
  CHECK_EQ(next(), ST_PERF_NEW_THREAD);
  st_perf_sampler_decide(s, 10, true);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES);
  st_perf_sampler_add_frame(s, s->unknown[0].space, 0x1000, 1);
  sample_is("1:0 2:10 3:10 5:2 6:7 4:1");
  CHECK_EQ(next(), ST_PERF_CHANGE);
  st_perf_sampler_renew(s, 10);
  CHECK_EQ(next(), ST_PERF_NEW_FRAMES);
  st_perf_sampler_add_frame(s, s->unknown[0].space, 0x1000, 2);
  sample_is("1:0 2:10 3:10 5:2 6:7 4:2");
  end();
}

static void losses_ends_and_forks_are_shown(void) {
  start(ST_PERF_CALL_CHAIN);
  put_lost(&built, 9, 1);
  put_fork(&built, ST_PERF_FORK, 11, 10, 11, 2);
  put_fork(&built, ST_PERF_FORK, 10, 10, 12, 3); /* A thread. */
  put_fork(&built, ST_PERF_EXIT, 10, 10, 12, 4);
  give(6);
  CHECK_EQ(next(), ST_PERF_KERNEL_LOSS);
  CHECK_EQ(s->record.lost, 9);
  CHECK_EQ(s->cpu, 6);
  CHECK_EQ(next(), ST_PERF_CHANGE);
  CHECK_EQ(s->record.type, ST_PERF_FORK);
  CHECK_EQ(s->record.pid, 11);
  CHECK_EQ(next(), ST_PERF_CHANGE);
  CHECK_EQ(s->record.type, ST_PERF_EXIT);
  CHECK_EQ(next(), ST_PERF_DONE);
  end();
}

int main(void) {
  RUN(sample_without_stacks_is_a_packet);
  RUN(owner_is_asked_about_threads_and_frames);
  RUN(frames_that_stay_unknown_are_told);
  RUN(processes_out_of_scope_have_no_stacks);
  RUN(what_runs_in_user_mode_has_no_kernel_stack);
  RUN(stacks_beyond_the_limit_of_a_read_are_told);
  RUN(stacks_are_unwound_with_the_code_that_the_owner_names);
  RUN(records_of_all_cpus_are_in_the_order_of_time);
  RUN(addresses_after_renewal_are_new);
  RUN(losses_ends_and_forks_are_shown);
  return 0;
}
