/* Tests of bundles of events. */
#include "probes/ftrace_bundle.h"

#include "ftrace_pages.h"
#include "text_output.h"

static struct page_builder page;
static struct st_ftrace_bundle bundle;

static void begin(void) {
  st_ftrace_bundle_init(&bundle, &kTestTable);
  st_ftrace_bundle_begin(&bundle, 3, false, 900, output_begin());
  page_begin(&page, 1000);
}

static void expect(uint32_t nested, const char* expected) {
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  st_ftrace_bundle_end(&bundle);
  output_is(nested, expected);
  st_ftrace_bundle_free(&bundle);
}

/* The fields of event 7: a number, an array of chars, a location, a device, an
 * array, a string up to the end. */
static const char kFields[] =
    "\xFE\xFF\xFF\xFF"
    "abc\0defg"
    "\x2C\0\3\0"
    "\1\0\x80\0"
    "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0"
    "hi\0\0";

static void plain_event_is_written_with_all_its_fields(void) {
  begin();
  page_event(&page, 5, 7, 42, kFields, 40);
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  CHECK_EQ(bundle.last_time, 1005);
  st_ftrace_bundle_end(&bundle);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, output, output_root.size);
  for (int i = 0; i < 3; i++)
    CHECK(st_decoder_next(&d, &f));
  char text[1024];
  form(text, f.data, f.size, 1u << 20);
  CHECK(strcmp(text,
               "1:1005 2:42 20{1:18446744073709551614 2:4294967294 3:'abc' "
               "4:'hi' 5:'hi' 6:2049 7:5 7:6 8:'hi'}") == 0);
  st_ftrace_bundle_free(&bundle);
}

static void fields_beyond_the_record_are_left_out(void) {
  begin();
  page_event(&page, 0, 7, 1, "\1\0\0\0abcdefgh\xFF\xFF\xFF\xFF", 16);
  expect(1 << 2,
         "1:3 10:900 2{1:1000 2:1 20:'\x08\x01\x10\x01\x1a\x08"
         "abcdefgh'}");
}

static void unknown_events_are_left_out(void) {
  begin();
  page_event(&page, 0, 6, 1, "", 0);
  page_event(&page, 0, 999, 1, "", 0);
  expect(0, "1:3 10:900");
  CHECK_EQ(bundle.last_time, 900);
}

static void put_switch(uint32_t delta, int64_t state, int32_t pid,
                       const char* comm) {
  char fields[32] = {0};
  int32_t prio = 120;
  memcpy(fields, &state, 8);
  memcpy(fields + 8, &pid, 4);
  memcpy(fields + 12, &prio, 4);
  strcpy(fields + 16, comm);
  page_event(&page, delta, 8, 1, fields, sizeof fields);
}

static void scheduling_is_written_in_columns(void) {
  begin();
  put_switch(1, 2, 70, "sh");
  put_switch(3, 0, 71, "cat");
  put_switch(4, 1, 70, "sh");
  page_event(&page, 1, 9, 5, "\7\0\0\0\1\0\0\0\x78\0\0\0cat\0............", 28);
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  static const struct {
    int column;
    const char* bytes;
    size_t size;
  } kColumns[] = {{ST_SWITCH_TIMESTAMP, "\xE9\7\3\4", 4},
                  {ST_SWITCH_PREV_STATE, "\2\0\1", 3},
                  {ST_SWITCH_NEXT_PID, "FGF", 3},
                  {ST_SWITCH_NEXT_PRIO, "xxx", 3},
                  {ST_SWITCH_NEXT_COMM, "\0\1\0", 3},
                  {ST_WAKING_TIMESTAMP, "\xF1\7", 2},
                  {ST_WAKING_PID, "\7", 1},
                  {ST_WAKING_TARGET_CPU, "\1", 1},
                  {ST_WAKING_PRIO, "x", 1},
                  {ST_WAKING_COMM, "\2", 1},
                  {ST_WAKING_FLAGS, "\3", 1}};
  for (size_t i = 0; i < ST_COMPACT_COLUMNS; i++) {
    const struct st_packed* column = &bundle.columns[kColumns[i].column];
    CHECK_EQ(st_packed_size(column), kColumns[i].size);
    CHECK(memcmp(column->begin, kColumns[i].bytes, kColumns[i].size) == 0);
  }
  st_ftrace_bundle_end(&bundle);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, output, output_root.size);
  while (st_decoder_next(&d, &f) && f.number != 4)
    continue;
  st_decoder_init(&d, f.data, f.size);
  for (int names = 0; names < 3; names++)
    CHECK(st_decoder_next(&d, &f) && f.number == 5);
  for (size_t i = 0; i < ST_COMPACT_COLUMNS; i++)
    CHECK(st_decoder_next(&d, &f) && f.size == kColumns[i].size);
  CHECK_EQ(st_decoder_left(&d), 0);
  st_ftrace_bundle_free(&bundle);
}

static void put_numbered(int number) {
  char comm[16];
  snprintf(comm, sizeof comm, "thread %d", number);
  put_switch(1, -number, number << 20, comm);
}

/* More names than slots, in several pages, of which each is twice there. */
static void each_name_of_many_has_one_index(void) {
  enum { NAMES = 900, A_PAGE = 50 };
  begin();
  for (int i = 0; i < 2 * NAMES; i += A_PAGE) {
    page_begin(&page, 1000);
    for (int j = i; j < i + A_PAGE; j++)
      put_numbered(j % NAMES);
    page_end(&page, 0);
    st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  }
  CHECK_EQ(bundle.name_count, NAMES);
  const struct st_packed* column = &bundle.columns[ST_SWITCH_NEXT_COMM];
  const uint8_t* at = column->begin;
  for (int i = 0; i < 2 * NAMES; i++) {
    uint64_t index;
    at = st_get_varint(at, column->cur, &index);
    CHECK(at && index == (uint64_t)i % NAMES);
  }
  CHECK(at == column->cur);
  st_ftrace_bundle_end(&bundle);
  st_ftrace_bundle_free(&bundle);
}

static void numbers_of_all_sizes_are_written(void) {
  begin();
  for (int bits = 0; bits < 31; bits++)
    put_switch(1, INT64_MIN >> (2 * bits), 1 << bits, "sh");
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  const uint8_t* state = bundle.columns[ST_SWITCH_PREV_STATE].begin;
  const uint8_t* pid = bundle.columns[ST_SWITCH_NEXT_PID].begin;
  for (int bits = 0; bits < 31; bits++) {
    uint64_t value;
    state =
        st_get_varint(state, bundle.columns[ST_SWITCH_PREV_STATE].cur, &value);
    CHECK(state && value == (uint64_t)(INT64_MIN >> (2 * bits)));
    pid = st_get_varint(pid, bundle.columns[ST_SWITCH_NEXT_PID].cur, &value);
    CHECK(pid && value == (uint64_t)1 << bits);
  }
  st_ftrace_bundle_end(&bundle);
  st_ftrace_bundle_free(&bundle);
}

/* Six numbers of ten bytes don't fit an event with lengths of one byte. */
static void long_event_is_written_too(void) {
  static const struct st_ftrace_field kNumbers[] = {
      {1, 8, 96, ST_FTRACE_U64_ARRAY, NULL, 0}};
  static struct st_ftrace_event events[] = {
      {20, ST_FTRACE_PLAIN, 1, kNumbers, NULL, 0, NULL, 0}};
  static const struct st_ftrace_table table = {events, 1, {NULL, 0}};
  uint64_t fields[12];
  for (int i = 0; i < 12; i++)
    fields[i] = UINT64_MAX - (uint64_t)i;
  st_ftrace_bundle_init(&bundle, &table);
  st_ftrace_bundle_begin(&bundle, 3, false, 900, output_begin());
  page_begin(&page, 1000);
  page_event(&page, 0, 0, 42, fields, sizeof fields);
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  st_ftrace_bundle_end(&bundle);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, output, output_root.size);
  for (int i = 0; i < 3; i++)
    CHECK(st_decoder_next(&d, &f));
  st_decoder_init(&d, f.data, f.size);
  while (st_decoder_next(&d, &f) && f.number != 20)
    continue;
  st_decoder_init(&d, f.data, f.size);
  for (int i = 0; i < 12; i++)
    CHECK(st_decoder_next(&d, &f) && f.number == 1 && f.value == fields[i]);
  CHECK_EQ(st_decoder_left(&d), 0);
  st_ftrace_bundle_free(&bundle);
}

static void short_compact_events_are_errors(void) {
  begin();
  page_event(&page, 0, 8, 1, "abcd", 4);
  expect(1 << 8, "1:3 10:900 8{1:1000 2:16}");
  CHECK_EQ(bundle.errors, 1u << ST_FTRACE_SHORT_COMPACT);
}

static void damaged_pages_are_errors_and_keep_earlier_events(void) {
  begin();
  put_switch(1, 0, 70, "sh");
  page_u32(&page, 29);
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  CHECK_EQ(bundle.errors, 1u << ST_FTRACE_NULL_PADDING);
  CHECK_EQ(bundle.name_count, 1);
  st_ftrace_bundle_end(&bundle);
  st_ftrace_bundle_free(&bundle);
}

static void generic_event_is_described_once_in_a_bundle(void) {
  begin();
  page_event(&page, 0, 10, 1, "\2\0\0\0", 4);
  page_event(&page, 0, 10, 1, "\3\0\0\0", 4);
  expect(1 << 2,
         "1:3 10:900 11:'d' 2{1:1000 2:1 65536:'\x08\x02'} "
         "2{1:1000 2:1 65536:'\x08\x03'}");
}

static void addresses_are_numbered_in_a_bundle(void) {
  static const uint64_t kFields[] = {0xffffffff81000010, 0xffff888000000000};
  begin();
  page_event(&page, 0, 11, 1, kFields, sizeof kFields);
  page_event(&page, 0, 11, 1, &kFields[1], sizeof *kFields);
  page_end(&page, 0);
  st_ftrace_bundle_add_page(&bundle, page.data, TEST_PAGE);
  CHECK_EQ(bundle.addresses.entries.size, 2);
  CHECK(bundle.addresses.entries.data[0].address == kFields[0]);
  CHECK(bundle.addresses.entries.data[1].address == kFields[1]);
  st_ftrace_bundle_end(&bundle);
  output_is(1 << 2,
            "1:3 10:900 2{1:1000 2:1 60:'\x08\x01\x10\x02'} "
            "2{1:1000 2:1 60:'\x08\x02'}");
  st_ftrace_bundle_begin(&bundle, 3, false, 900, output_begin());
  CHECK_EQ(bundle.addresses.entries.size, 0);
  st_ftrace_bundle_end(&bundle);
  st_ftrace_bundle_free(&bundle);
}

static void generic_event_of_the_old_form_has_named_fields(void) {
  begin();
  page_event(&page, 0, 12, 1, "\5\0\0\0xy\0\0", 8);
  expect(1 << 2,
         "1:3 10:900 2{1:1000 2:1 327:'\n\1n\x12\5\n\1a(\5"
         "\x12\7\n\1b\x1a\2xy'}");
}

static void texts_are_filtered(void) {
  begin();
  page_event(&page, 0, 13, 1, "yes", 4);
  page_event(&page, 9, 13, 1, "no\0", 4);
  expect(1 << 2, "1:3 10:900 2{1:1000 2:1 3:'\x12\3yes'}");
  CHECK_EQ(bundle.last_time, 1000);
}

static void events_with_invalid_fields_are_refused(void) {
  struct st_ftrace_field odd = {1, 8, 3, ST_FTRACE_SIGNED, NULL, 0};
  struct st_ftrace_event event = {1, ST_FTRACE_PLAIN, 1, &odd, NULL, 0, NULL,
                                  0};
  CHECK(!st_ftrace_event_is_valid(&event));
  odd.kind = ST_FTRACE_KINDS;
  odd.size = 4;
  CHECK(!st_ftrace_event_is_valid(&event));
  odd.kind = ST_FTRACE_UNSIGNED;
  CHECK(st_ftrace_event_is_valid(&event));
  event.form = ST_FTRACE_COMPACT_SWITCH;
  CHECK(!st_ftrace_event_is_valid(&event));
  event.form = ST_FTRACE_PRINT;
  CHECK(!st_ftrace_event_is_valid(&event));
  for (int id = 7; id < 14; id++)
    CHECK(st_ftrace_event_is_valid(&test_events[id]));
}

int main(void) {
  RUN(plain_event_is_written_with_all_its_fields);
  RUN(fields_beyond_the_record_are_left_out);
  RUN(unknown_events_are_left_out);
  RUN(scheduling_is_written_in_columns);
  RUN(each_name_of_many_has_one_index);
  RUN(numbers_of_all_sizes_are_written);
  RUN(long_event_is_written_too);
  RUN(short_compact_events_are_errors);
  RUN(damaged_pages_are_errors_and_keep_earlier_events);
  RUN(generic_event_is_described_once_in_a_bundle);
  RUN(addresses_are_numbered_in_a_bundle);
  RUN(generic_event_of_the_old_form_has_named_fields);
  RUN(texts_are_filtered);
  RUN(events_with_invalid_fields_are_refused);
  return 0;
}
