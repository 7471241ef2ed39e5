/* Tests of the converters of linux.sys_stats, with lines of several kernels. */
#include "probes/sys_files.h"

#include "text_output.h"

static const struct st_counter_name kCounters[] = {{"MemTotal", 8, 1},
                                                   {"MemFree", 7, 0},
                                                   {"Active(anon)", 12, 9}};
static struct st_sys_choice choice = {.counters = kCounters,
                                      .counter_count = 3,
                                      .ns_per_tick = 10000000,
                                      .resource = 3};

static void expect(const char* group, const char* text, uint32_t nested,
                   const char* expected) {
  const struct st_sys_group* file = st_sys_group_of(group);
  CHECK(file);
  file->convert(st_text_of(text, strlen(text)), &choice, output_begin());
  output_is(nested, expected);
}

static void chosen_counters_are_written(void) {
  const char* text =
      "MemTotal:       24684084 kB\nMemFree:  7 kB\nNew:  1 kB\n"
      "Active(anon):   99999999999999999999 kB\nHugePages_Total:       0\n";
  expect("meminfo", text, 1 << 1,
         "1{1:1 2:24684084} 1{1:9 2:18446744073709551615}");
  expect("vmstat", "Active(anon) 5\nMemTotal 4\nMemTotal x\n", 1 << 2,
         "2{1:9 2:5} 2{1:1 2:4}");
}

static void counters_are_found_in_any_order_of_the_lines(void) {
  expect("meminfo", "Active(anon): 2 kB\nMemFree: 3 kB\nMemTotal: 1 kB\n",
         1 << 1, "1{1:9 2:2} 1{1:1 2:1}");
}

static const char kStat[] =
    "cpu  300 20 30 400 50 6 7 8 9 10\n"
    "cpu0 100 10 10 200 20 3 3 4 0 0\n"
    "intr 70 0 60 0 10\nctxt 12345\nprocesses 678\nsoftirq 33 11 0 22\n";

static void stat_has_cpu_times_and_counts(void) {
  expect("stat", kStat, 1 << 3 | 1 << 6 | 1 << 8,
         "3{1:0 2:1000000000 3:100000000 4:100000000 5:2000000000 6:200000000 "
         "7:30000000 8:30000000 9:40000000} 5:70 6{1:1 2:60} 6{1:3 2:10} 4:678 "
         "7:33 8{1:0 2:11} 8{1:1 2:0} 8{1:2 2:22}");
}

static void only_the_chosen_parts_of_stat_are_written(void) {
  choice.parts = 1 << 4;
  expect("stat", kStat, 0, "4:678");
  choice.parts = 0;
}

static void old_kernels_have_fewer_cpu_times(void) {
  expect("stat", "cpu0 1 2 3 4\n", 1 << 3,
         "3{1:0 2:10000000 3:20000000 4:30000000 5:40000000}");
}

static void buddyinfo_has_the_blocks_of_each_zone(void) {
  expect("buddyinfo",
         "Node 0, zone      DMA      1      0      3 \nNode x\n"
         "Node 1, zone   Normal   5\n",
         1 << 12, "12{1:'0' 2:'DMA' 3:1 3:0 3:3} 12{1:'1' 2:'Normal' 3:5}");
}

static void diskstats_of_old_kernels_have_neither_discards_nor_flushes(void) {
  expect("diskstat",
         " 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11\n"
         "   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
         1 << 13,
         "13{1:'nvme0n1' 2:3 3:4 4:7 5:8} "
         "13{1:'sda1' 2:3 3:4 4:7 5:8 6:14 7:15 8:16 9:17}");
}

static void pressure_is_in_nanoseconds(void) {
  expect("psi",
         "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"
         "full avg10=1.00 total=5\nnone total=7\n",
         1 << 14, "14{1:3 2:12000} 14{1:4 2:5000}");
}

static void slabinfo_has_pages_and_slabs(void) {
  expect("slab",
         "slabinfo - version: 2.1\n"
         "# name            <active_objs> <num_objs> <objsize> <objperslab>\n"
         "dentry  61257  61257  192  21    2 : tunables  0  0  0 : slabdata  "
         " 2917   2919  0\nshort 1 2 3\n",
         1 << 18, "18{1:'dentry' 2:2 3:2919}");
}

static void unknown_group_has_no_file(void) {
  CHECK(!st_sys_group_of("thermal"));
}

int main(void) {
  RUN(chosen_counters_are_written);
  RUN(counters_are_found_in_any_order_of_the_lines);
  RUN(stat_has_cpu_times_and_counts);
  RUN(only_the_chosen_parts_of_stat_are_written);
  RUN(old_kernels_have_fewer_cpu_times);
  RUN(buddyinfo_has_the_blocks_of_each_zone);
  RUN(diskstats_of_old_kernels_have_neither_discards_nor_flushes);
  RUN(pressure_is_in_nanoseconds);
  RUN(slabinfo_has_pages_and_slabs);
  RUN(unknown_group_has_no_file);
  return 0;
}
