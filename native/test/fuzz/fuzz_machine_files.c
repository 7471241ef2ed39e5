/* Fuzzes the converters of files in /proc.  The first byte of the input chooses
 * the file.  The written messages must be well-formed. */
#define CHECK_ABORTS
#include "../text_output.h"
#include "probes/process_files.h"
#include "probes/sys_files.h"

static void check_output(void) {
  size_t size = st_message_finalize(&output_root);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, output, size);
  while (st_decoder_next(&d, &f))
    continue;
  CHECK_EQ(st_decoder_left(&d), 0);
}

static void check_process(struct st_text text) {
  struct st_status status;
  struct st_process_values values = {0};
  struct st_process_stat stat;
  int64_t number;
  st_parse_status(text, &status, &values);
  st_parse_smaps(text, &values);
  CHECK_EQ(values.present >> ST_PROCESS_VALUES, 0);
  st_write_process(&status, text, output_begin());
  check_output();
  st_write_thread(&status, 5, true, output_begin());
  check_output();
  st_parse_stat(text, &stat);
  st_parse_number(text, &number);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const kGroups[] = {
      "meminfo", "vmstat", "stat", "buddyinfo", "diskstat", "psi", "slab"};
  static const struct st_counter_name kNames[] = {{"a", 1, 3}, {"bc", 2, 0}};
  static const struct st_sys_choice kChoice = {.counters = kNames,
                                               .counter_count = 2,
                                               .ns_per_tick = 10000000,
                                               .resource = 1};
  if (!size)
    return 0;
  struct st_text text = st_text_of(data + 1, size - 1);
  if (*data % 8 == 7) {
    check_process(text);
  } else {
    st_sys_group_of(kGroups[*data % 8])
        ->convert(text, &kChoice, output_begin());
    check_output();
  }
  return 0;
}
