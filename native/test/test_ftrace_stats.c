/* Tests of the statistics of ftrace's ring buffers. */
#include "probes/ftrace_stats.h"

#include "text_output.h"

static const char kStats[] =
    "entries: 12\noverrun: 3\ncommit overrun: 0\nbytes: 4096\n"
    "oldest event ts: 66569.789851\nnow ts: 66569.809204\n"
    "dropped events: 1\nread events: 18446744073709551615\n";

/* Returns the FtraceCpuStats that is written for a text. */
static struct st_decoder written(const char* text, uint32_t cpu) {
  struct st_message* root = output_begin();
  struct st_decoder d;
  struct st_field f;
  st_write_ftrace_cpu_stats(st_text_of(text, strlen(text)), cpu, root);
  st_decoder_init(&d, output, st_message_finalize(root));
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 2);
  CHECK_EQ(st_decoder_left(&d), 0);
  st_decoder_init(&d, f.data, f.size);
  return d;
}

/* Returns a field of the FtraceCpuStats that is written for a text; 0 if it has
 * none. */
static uint64_t value_of(const char* text, uint32_t number) {
  struct st_decoder d = written(text, 5);
  uint64_t value = 0;
  for (struct st_field f; st_decoder_next(&d, &f);)
    value = f.number == number ? f.value : value;
  CHECK_EQ(st_decoder_left(&d), 0);
  return value;
}

static size_t count_of_fields(const char* text) {
  struct st_decoder d = written(text, 5);
  size_t count = 0;
  for (struct st_field f; st_decoder_next(&d, &f);)
    count++;
  return count;
}

static uint64_t bits_of(double seconds) {
  uint64_t bits;
  memcpy(&bits, &seconds, sizeof bits);
  return bits;
}

static void each_line_is_a_field(void) {
  static const uint64_t kNumbers[] = {0, 5, 12, 3, 0, 4096};
  for (uint32_t field = 1; field < 6; field++)
    CHECK_EQ(value_of(kStats, field), kNumbers[field]);
  CHECK_EQ(value_of(kStats, 8), 1);
  CHECK_EQ(value_of(kStats, 9), UINT64_MAX);
  CHECK_EQ(count_of_fields(kStats), 9);
}

static void times_are_exact(void) {
  CHECK_EQ(value_of(kStats, 6), bits_of(66569.789851));
  CHECK_EQ(value_of(kStats, 7), bits_of(66569.809204));
}

static void times_of_a_counter_have_no_fraction(void) {
  CHECK_EQ(value_of("now ts: 12345678\n", 7), bits_of(12345678));
}

static void a_cpu_without_a_file_has_only_its_number(void) {
  CHECK_EQ(count_of_fields(""), 1);
  CHECK_EQ(value_of("", 1), 5);
}

static void unknown_and_damaged_lines_are_left_out(void) {
  CHECK_EQ(count_of_fields("entries: x\nnew: 1\nno colon\n:\nbytes:"), 1);
}

int main(void) {
  RUN(each_line_is_a_field);
  RUN(times_are_exact);
  RUN(times_of_a_counter_have_no_fraction);
  RUN(a_cpu_without_a_file_has_only_its_number);
  RUN(unknown_and_damaged_lines_are_left_out);
  return 0;
}
