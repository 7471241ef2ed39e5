/* Tests of the reader of trace_pipe_raw, with files of pages. */
#include "probes/ftrace_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "ftrace_pages.h"
#include "text_output.h"

static struct st_ftrace_reader* reader;
static struct page_builder page;
static FILE* file;

static void start(void) {
  reader = st_ftrace_reader_new(kTestTable, TEST_PAGE, 4);
  file = tmpfile();
  CHECK(reader && file);
}

static void finish(void) {
  st_ftrace_reader_free(reader);
  fclose(file);
}

/* Appends a page with one event.  If `padded`, it is more than half full. */
static void add_page(uint64_t time, uint64_t flags, bool padded) {
  static const uint8_t kPadding[2048];
  page_begin(&page, time);
  page_event(&page, 0, 10, 1, "\2\0\0\0", 4);
  if (padded) {
    page_u32(&page, 1u << 5 | 29);
    page_u32(&page, 4 + sizeof kPadding);
    page_put(&page, kPadding, sizeof kPadding);
  }
  page_end(&page, flags);
  CHECK_EQ(fwrite(page.data, 1, TEST_PAGE, file), TEST_PAGE);
}

static bool read_all(void) {
  fflush(file);
  lseek(fileno(file), 0, SEEK_SET);
  return st_ftrace_read(reader, fileno(file), 2);
}

static bool next_bundle(void) {
  return st_ftrace_next_bundle(reader, output_begin());
}

static void pages_of_a_batch_are_one_bundle(void) {
  start();
  add_page(100, 0, true);
  add_page(200, 0, true);
  CHECK(!read_all());
  CHECK(next_bundle());
  output_is(1 << 2,
            "1:2 10:0 11:'d' 2{1:100 2:1 65536:'\x08\x02'} "
            "2{1:200 2:1 65536:'\x08\x02'}");
  CHECK(!next_bundle());
  CHECK_EQ(reader->last_times[2], 200);
  finish();
}

static void bundle_ends_before_a_loss(void) {
  start();
  add_page(100, 0, true);
  add_page(200, 1u << 31, true);
  read_all();
  CHECK(next_bundle());
  output_is(1 << 2, "1:2 10:0 11:'d' 2{1:100 2:1 65536:'\x08\x02'}");
  CHECK(next_bundle());
  output_is(1 << 2, "1:2 3:1 10:100 11:'d' 2{1:200 2:1 65536:'\x08\x02'}");
  CHECK(!next_bundle());
  finish();
}

static void batch_ends_at_a_page_that_is_not_half_full(void) {
  start();
  add_page(100, 0, false);
  add_page(200, 0, false);
  add_page(300, 0, true);
  CHECK(!read_all());
  CHECK_EQ(reader->batch.count, 2);
  finish();
}

static void batch_has_a_limited_number_of_pages(void) {
  start();
  uint32_t pages = ST_FTRACE_BATCH_BYTES / TEST_PAGE;
  for (uint32_t i = 0; i < pages + 1; i++)
    add_page(100, 0, true);
  CHECK(read_all());
  CHECK_EQ(reader->batch.count, pages);
  finish();
}

static void batch_has_at_least_one_page(void) {
  struct st_ftrace_reader* r =
      st_ftrace_reader_new(kTestTable, 2 * ST_FTRACE_BATCH_BYTES, 1);
  CHECK_EQ(r->batch.max, 1);
  st_ftrace_reader_free(r);
}

static void empty_buffer_has_no_bundle(void) {
  start();
  CHECK(!read_all());
  CHECK(!next_bundle());
  finish();
}

static void failed_reads_are_errors_in_a_bundle(void) {
  start();
  CHECK(!st_ftrace_read(reader, -1, 1));
  CHECK(next_bundle());
  output_is(1 << 8, "1:1 10:0 8{1:0 2:2}");
  CHECK(!next_bundle());
  fputs("short", file);
  read_all();
  CHECK(next_bundle());
  output_is(1 << 8, "1:2 10:0 8{1:0 2:3}");
  finish();
}

int main(void) {
  RUN(pages_of_a_batch_are_one_bundle);
  RUN(bundle_ends_before_a_loss);
  RUN(batch_ends_at_a_page_that_is_not_half_full);
  RUN(batch_has_a_limited_number_of_pages);
  RUN(batch_has_at_least_one_page);
  RUN(empty_buffer_has_no_bundle);
  RUN(failed_reads_are_errors_in_a_bundle);
  return 0;
}
