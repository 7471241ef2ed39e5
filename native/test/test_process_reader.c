/* Tests of the process reader on this machine's /proc.  The kinds of files and
 * their changes are tested in tests/unit/probes/test_process_stats.py. */
#include "probes/process_reader.h"

#include <unistd.h>

#include "text_output.h"

static struct st_process_reader reader;
static const struct st_process_options kAll = {true, true, true,    true,
                                               true, true, 10000000};

static void own_process_is_described(void) {
  st_process_reader_init(&reader, "/proc", &kAll);
  CHECK(st_process_reader_list(&reader));
  st_write_process_tree(&reader, ST_ALL_PROCESSES, output_begin());
  size_t size = st_message_finalize(&output_root);
  struct st_decoder d, inner;
  struct st_field f, pid;
  bool found = false;
  st_decoder_init(&d, output, size);
  while (st_decoder_next(&d, &f)) {
    st_decoder_init(&inner, f.data, f.size);
    CHECK(st_decoder_next(&inner, &pid) && pid.number == 1);
    found |= f.number == 1 && pid.value == (uint64_t)getpid();
  }
  CHECK(found);
  CHECK_EQ(st_decoder_left(&d), 0);
  st_process_reader_free(&reader);
}

static void values_are_written_again_after_they_are_forgotten(void) {
  const struct st_process_options options = {0};
  st_process_reader_init(&reader, "/proc", &options);
  size_t sizes[2];
  for (int i = 0; i < 2; i++) {
    CHECK(st_process_reader_list(&reader));
    st_process_reader_forget_values(&reader);
    st_write_process_values(&reader, output_begin());
    sizes[i] = st_message_finalize(&output_root);
    CHECK(sizes[i] > 20);
  }
  st_process_reader_free(&reader);
}

static void machine_without_proc_has_no_processes(void) {
  st_process_reader_init(&reader, "/no/folder", &kAll);
  CHECK(st_process_reader_list(&reader));
  CHECK_EQ(reader.count, 0);
  st_write_process_values(&reader, output_begin());
  output_is(0, "");
  st_write_process_tree(&reader, ST_ALL_PROCESSES, output_begin());
  output_is(0, "");
  st_process_reader_free(&reader);
}

int main(void) {
  RUN(own_process_is_described);
  RUN(values_are_written_again_after_they_are_forgotten);
  RUN(machine_without_proc_has_no_processes);
  return 0;
}
