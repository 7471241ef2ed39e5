/* Tests of pages of the kernel's ring buffer. */
#include "ftrace_pages.h"

static struct page_builder built;
static struct st_ftrace_page page;
static struct st_ftrace_record record;

static void open_page(uint64_t flags) {
  page_end(&built, flags);
  st_ftrace_page_open(&page, built.data, TEST_PAGE);
}

static void expect_end(uint8_t status) {
  CHECK(!st_ftrace_page_next(&page, &record));
  CHECK_EQ(page.status, status);
  CHECK(!st_ftrace_page_next(&page, &record));
}

static void times_are_sums_of_deltas(void) {
  page_begin(&built, 1000);
  page_event(&built, 5, 7, 42, "abcd", 4);
  page_u32(&built, 3u << 5 | 30); /* time extend */
  page_u32(&built, 2);
  page_event(&built, 1, 8, -1, "", 0);
  page_u32(&built, 9u << 5 | 31); /* time stamp */
  page_u32(&built, 4);
  page_event(&built, 1, 9, 1, "", 0);
  open_page(0);
  CHECK(!page.lost_events);
  CHECK(st_ftrace_page_next(&page, &record));
  CHECK_EQ(record.time, 1005);
  CHECK_EQ(record.size, 12);
  CHECK_EQ(st_ftrace_event_id(&record), 7);
  CHECK_EQ(st_ftrace_event_pid(&record), 42);
  CHECK(st_ftrace_page_next(&page, &record));
  CHECK_EQ(record.time, 1009 + (2ull << 27));
  CHECK_EQ(st_ftrace_event_pid(&record), -1);
  CHECK(st_ftrace_page_next(&page, &record));
  CHECK_EQ(record.time, (4ull << 27) + 10);
  expect_end(ST_FTRACE_OK);
}

static void long_events_and_padding_have_a_length(void) {
  page_begin(&built, 0);
  page_u32(&built, 1u << 5 | 29);
  page_u32(&built, 12);
  page_put(&built, "ignored", 8);
  page_u32(&built, 2u << 5);
  page_u32(&built, 4 + 16);
  page_put(&built, "\7\0..\1\0\0\0........", 16);
  open_page(0);
  CHECK(st_ftrace_page_next(&page, &record));
  CHECK_EQ(record.time, 3);
  CHECK_EQ(record.size, 16);
  expect_end(ST_FTRACE_OK);
}

static void lost_events_are_reported(void) {
  page_begin(&built, 0);
  open_page(1u << 31);
  CHECK(page.lost_events);
  expect_end(ST_FTRACE_OK);
}

static void damaged_header_has_no_records(void) {
  page_begin(&built, 0);
  open_page(TEST_PAGE);
  expect_end(ST_FTRACE_PAGE_HEADER);
  st_ftrace_page_open(&page, built.data, 15);
  expect_end(ST_FTRACE_PAGE_HEADER);
}

static void damaged_records_end_the_page(void) {
  static const struct {
    uint32_t words[2];
    size_t size;
    uint8_t status;
  } kCases[] = {
      {{1}, 3, ST_FTRACE_SHORT_HEADER},
      {{29}, 4, ST_FTRACE_NULL_PADDING},
      {{1 << 5 | 29}, 4, ST_FTRACE_SHORT_PADDING},
      {{1 << 5 | 29, 99}, 8, ST_FTRACE_INVALID_PADDING},
      {{1 << 5 | 29, 3}, 8, ST_FTRACE_INVALID_PADDING},
      {{30}, 4, ST_FTRACE_SHORT_TIME_EXTEND},
      {{31}, 4, ST_FTRACE_SHORT_TIME_STAMP},
      {{0}, 4, ST_FTRACE_SHORT_LENGTH},
      {{0, 3}, 8, ST_FTRACE_ZERO_LENGTH},
      {{0, 99}, 8, ST_FTRACE_INVALID_LENGTH},
      {{0, 8}, 8, ST_FTRACE_INVALID_LENGTH},
      {{1}, 8, ST_FTRACE_SHORT_EVENT_ID},
      {{28}, 8, ST_FTRACE_OVERFLOW},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    page_begin(&built, 0);
    page_event(&built, 0, 7, 1, "", 0);
    page_put(&built, kCases[i].words, kCases[i].size);
    open_page(0);
    CHECK(st_ftrace_page_next(&page, &record));
    expect_end(kCases[i].status);
  }
}

int main(void) {
  RUN(times_are_sums_of_deltas);
  RUN(long_events_and_padding_have_a_length);
  RUN(lost_events_are_reported);
  RUN(damaged_header_has_no_records);
  RUN(damaged_records_end_the_page);
  return 0;
}
