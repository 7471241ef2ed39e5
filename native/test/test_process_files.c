/* Tests of the converters of linux.process_stats. */
#include "probes/process_files.h"

#include "text_output.h"

static struct st_text text_of(const char* text) {
  return st_text_of(text, strlen(text));
}

static const char kStatus[] =
    "Name:\tshop\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t77\nPid:\t77\n"
    "PPid:\t1\nUid:\t1000\t0\t0\t0\nNStgid:\t77\t5\nNSpid:\t77\t5\t1\n"
    "Kthread:\t0\nVmPeak:\t    5508 kB\nVmSize:\t    5484 kB\nVmLck:\t       0 "
    "kB\nVmHWM:\t    4600 kB\nVmRSS:\t    4516 kB\nRssAnon:\t    1432 "
    "kB\nRssFile:\t 3084 kB\nRssShmem:\t       0 kB\nVmSwap:\t       0 "
    "kB\nThreads:\t3\n";

static void status_describes_a_process(void) {
  struct st_status s;
  struct st_process_values values = {0};
  st_parse_status(text_of(kStatus), &s, &values);
  CHECK_EQ(s.threads, 3);
  CHECK_EQ(values.present, 0xFF);
  CHECK_EQ(values.value[ST_VM_SIZE], 5484);
  CHECK_EQ(values.value[7], 4600);
  st_write_process(&s, st_text_of("a\0\0bc", 5), output_begin());
  output_is(0, "1:77 2:1 3:'a' 3:'bc' 5:1000 6:5 6:1 8:0");
  st_write_thread(&s, 78, true, output_begin());
  output_is(0, "1:78 3:77 2:'shop' 4:5 4:1");
}

static void status_is_read_up_to_the_number_of_threads(void) {
  struct st_status s;
  st_parse_status(text_of("Tgid:\t1\nThreads:\t3\nSigQ:\t0/9\nTgid:\t2\n"), &s,
                  NULL);
  CHECK_EQ(s.threads, 3);
  CHECK_EQ(s.tgid, 1);
}

static void process_without_a_command_line_is_written_with_its_name(void) {
  struct st_status s;
  st_parse_status(text_of("Name:\tkthreadd\nTgid:\t2\nPPid:\t0\n"
                          "Uid:\t4294967294\t0\t0\t0\nKthread:\t1\n"),
                  &s, NULL);
  st_write_process(&s, st_text_of(NULL, 0), output_begin());
  output_is(0, "1:2 2:0 3:'kthreadd' 5:18446744073709551614 9:1 8:1");
}

static void is_kthread_is_left_out_on_old_kernels(void) {
  struct st_status s;
  st_parse_status(text_of("Name:\ta b\nTgid:\t1\n"), &s, NULL);
  st_write_process(&s, text_of("x"), output_begin());
  output_is(0, "1:1 2:0 3:'x' 5:0");
}

static void smaps_have_proportional_sizes(void) {
  struct st_process_values values = {0};
  st_parse_smaps(
      text_of("55fd-7ffd ---p 00000000 00:00 0    [rollup]\nRss:   1756 kB\n"
              "Pss:    203 kB\nPss_Dirty:   1 kB\nSwapPss:   5 kB\n"),
      &values);
  CHECK_EQ(values.present, 1u << 8 | 1u << 9 | 1u << 13);
  CHECK_EQ(values.value[9], 203);
}

static void names_in_stat_may_contain_parentheses(void) {
  struct st_process_stat stat;
  const char* text =
      "77 (a) b) S 1 77 77 0 -1 4194560 2 0 0 0 300 40 0 0 20 0 1 0 5555 1 2\n";
  CHECK(st_parse_stat(text_of(text), &stat));
  CHECK_EQ(stat.user, 300);
  CHECK_EQ(stat.kernel, 40);
  CHECK_EQ(stat.start, 5555);
  CHECK_EQ(stat.ppid, 1);
  CHECK_EQ(stat.flags, 4194560);
  CHECK(st_text_is(stat.name, "a) b"));
  CHECK(!st_parse_stat(text_of("77 (sh) S 1 2"), &stat));
  CHECK(!st_parse_stat(text_of(""), &stat));
}

static void file_with_more_than_a_number_is_refused(void) {
  int64_t value;
  CHECK(st_parse_number(text_of("-17\n"), &value) && value == -17);
  CHECK(st_parse_number(text_of("5"), &value) && value == 5);
  CHECK(!st_parse_number(text_of(""), &value));
  CHECK(!st_parse_number(text_of("5 6\n"), &value));
  CHECK(!st_parse_number(text_of("5\n6\n"), &value));
  CHECK(!st_parse_number(text_of("99999999999999999999\n"), &value));
}

int main(void) {
  RUN(status_describes_a_process);
  RUN(status_is_read_up_to_the_number_of_threads);
  RUN(process_without_a_command_line_is_written_with_its_name);
  RUN(is_kthread_is_left_out_on_old_kernels);
  RUN(smaps_have_proportional_sizes);
  RUN(names_in_stat_may_contain_parentheses);
  RUN(file_with_more_than_a_number_is_refused);
  return 0;
}
