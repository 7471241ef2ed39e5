/* Fuzzes pages of the kernel's ring buffer: each half of the input is a page.
 * If the last byte of the input is odd, the headers are made valid. */
#define CHECK_ABORTS
#include "../ftrace_pages.h"
#include "../text_output.h"

static struct st_ftrace_bundle bundle;

static void add(const uint8_t* data, size_t size, bool valid) {
  static uint8_t page[TEST_PAGE];
  size = size < TEST_PAGE ? size : TEST_PAGE;
  memcpy(page, data, size);
  if (valid && size >= ST_FTRACE_PAGE_HEADER_SIZE) {
    uint64_t commit = size - ST_FTRACE_PAGE_HEADER_SIZE;
    memcpy(page + 8, &commit, sizeof commit);
  }
  st_ftrace_bundle_add_page(&bundle, page, size);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bool valid = size && data[size - 1] & 1;
  st_ftrace_bundle_init(&bundle, &kTestTable);
  st_ftrace_bundle_begin(&bundle, 1, false, 0, output_begin());
  if (size) {
    add(data, size / 2, valid);
    add(data + size / 2, size - size / 2, valid);
  }
  st_ftrace_bundle_end(&bundle);
  CHECK_EQ(bundle.errors >> ST_FTRACE_STATUS_END, 0);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, output, output_root.size);
  while (st_decoder_next(&d, &f))
    continue;
  CHECK_EQ(st_decoder_left(&d), 0);
  st_ftrace_bundle_free(&bundle);
  return 0;
}
