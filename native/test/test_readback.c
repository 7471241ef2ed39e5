#include "readback.h"

#include "decoder.h"
#include "fake_chunk.h"

/* Validates a copy of the packet in a heap block of its exact size, so that
 * ASan detects reads after its end. */
static bool is_valid(const void* data, size_t size) {
  uint8_t* copy = malloc(size ? size : 1);
  memcpy(copy, data, size);
  bool valid = st_packet_is_valid(copy, size);
  free(copy);
  return valid;
}

static const uint32_t kReserved[] = {3,  10, 33, 35,  36,  50,
                                     69, 79, 98, 124, 125, 133};

static bool is_reserved(uint32_t field) {
  for (size_t i = 0; i < 12; i++)
    if (kReserved[i] == field)
      return true;
  return false;
}

static void empty_packet_gets_trusted_fields(void) {
  CHECK(is_valid("", 0));
}

static void reserved_field_numbers_are_refused(void) {
  for (uint32_t field = 1; field < 3000; field++) {
    uint8_t m[32], *p = st_put_u64_field(m, 8, 5);
    p = st_put_u64_field(p, field, 0);
    CHECK_EQ(is_valid(m, (size_t)(p - m)), !is_reserved(field));
    p = st_put_bytes_field(m, field, "ab", 2);
    CHECK_EQ(is_valid(m, (size_t)(p - m)), !is_reserved(field));
    p = st_put_fixed64_field(m, field, 2);
    CHECK_EQ(is_valid(m, (size_t)(p - m)), !is_reserved(field));
  }
}

static void reserved_numbers_are_allowed_in_nested_messages(void) {
  uint8_t inner[32], m[64], *p = inner;
  p = st_put_u64_field(p, 3, 0);
  p = st_put_u64_field(p, 10, 7);
  size_t size = (size_t)(p - inner);
  p = st_put_bytes_field(m, 11, inner, size);
  CHECK(is_valid(m, (size_t)(p - m)));
}

static void redundantly_encoded_reserved_tags_are_refused(void) {
  /* The packet has field 3, with a tag of two bytes. */
  CHECK(!is_valid("\x98\x00\x01", 3));
  /* The packet has field 3, with a tag of four bytes. */
  CHECK(!is_valid("\x98\x80\x80\x00\x01", 5));
  /* The packet has only field 8, which is allowed. */
  CHECK(is_valid("\xC0\x80\x00\x01", 4));
  /* A parser that truncates this tag to 32 bits would see field 3. */
  CHECK(!is_valid("\x98\x80\x80\x80\x80\x01\x01", 7));
}

static void malformed_packets_are_refused(void) {
  CHECK(!is_valid("\x00\x01", 2)); /* Field number 0 is refused. */
  CHECK(!is_valid("\x0B", 1));
  CHECK(!is_valid("\x0C", 1));
  CHECK(!is_valid("\x46", 1));
  CHECK(!is_valid("\x47", 1));
  CHECK(!is_valid("\x80", 1));
  CHECK(!is_valid("\x40", 1));
  CHECK(!is_valid("\x40\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12));
  CHECK(is_valid("\x40\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11));
  CHECK(!is_valid("\x5A\x03xx", 4));
  CHECK(!is_valid("\x5A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11));
  CHECK(!is_valid("\x41xxxxxxx", 8));
  CHECK(!is_valid("\x45xxx", 4));
  /* Bytes after the last field are refused. */
  CHECK(!is_valid("\x40\x01\xFF", 3));
}

static void every_truncated_packet_is_refused(void) {
  uint8_t m[64], *p = m;
  size_t ends[4];
  p = st_put_u64_field(p, 8, UINT64_MAX);
  ends[0] = (size_t)(p - m);
  p = st_put_bytes_field(p, 11, "0123456789", 10);
  ends[1] = (size_t)(p - m);
  p = st_put_fixed64_field(p, 600, 1);
  ends[2] = (size_t)(p - m);
  p = st_put_u64_field(p, 58, 6);
  ends[3] = (size_t)(p - m);
  for (size_t n = 1; n <= ends[3]; n++) {
    bool whole = n == ends[0] || n == ends[1] || n == ends[2] || n == ends[3];
    CHECK_EQ(is_valid(m, n), whole);
  }
}

/* Makes a packet with field 8 (timestamp) and field 900 (bytes). */
static void add_packet(uint64_t timestamp, size_t size, char fill) {
  static uint8_t m[70000], text[65536];
  memset(text, fill, size);
  uint8_t* p = st_put_u64_field(m, 8, timestamp);
  p = st_put_bytes_field(p, 900, text, size);
  uint8_t header[ST_MAX_VARINT];
  size_t n = (size_t)(p - m);
  add_raw(header, (size_t)(st_put_varint(header, n) - header), 1);
  add_raw(m, n, 0);
}

static struct st_decoder trace;

/* Reads the next packet of the trace: the producer's bytes, then the trusted
 * fields, which are compared with `expected`. */
static void expect_packet(uint64_t timestamp, size_t size,
                          const uint8_t* expected, size_t expected_size) {
  struct st_field f;
  struct st_decoder d;
  CHECK(st_decoder_next(&trace, &f));
  CHECK_EQ(f.number, 1);
  st_decoder_init(&d, f.data, f.size);
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 8);
  CHECK_EQ(f.value, timestamp);
  CHECK(st_decoder_next(&d, &f));
  CHECK_EQ(f.number, 900);
  CHECK_EQ(f.size, size);
  for (size_t i = 1; i < size; i++)
    CHECK_EQ(f.data[i], f.data[0]);
  CHECK_EQ(st_decoder_left(&d), expected_size);
  CHECK(!memcmp(d.cur, expected, expected_size));
}

static uint8_t suffix[64];
static size_t suffix_size;

static void expect_suffix(int64_t uid, uint32_t sequence, int64_t pid,
                          uint32_t machine, uint32_t loss) {
  uint8_t* p = st_put_u64_field(suffix, 3, (uint64_t)uid);
  p = st_put_u64_field(p, 10, sequence);
  if (pid)
    p = st_put_u64_field(p, 79, (uint64_t)pid);
  if (machine)
    p = st_put_u64_field(p, 98, machine);
  if (loss)
    p = st_put_u64_field(p, 42, loss);
  suffix_size = (size_t)(p - suffix);
}

static void trusted_fields_are_appended_in_order(void) {
  struct st_trace_buffer* b = ring(65536);
  st_trace_buffer_set_producer(b, 1, 1000, 4242);
  st_trace_buffer_set_producer(b, 2, UINT32_MAX, -1);
  chunk(1, 5, 0);
  add_packet(1, 3, 'a');
  add_packet(2, 200, 'b');
  CHECK(commit(b));
  chunk(2, 5, 0);
  add_packet(3, 20000, 'c');
  CHECK(commit(b));
  chunk(1, 5, 2);
  add_packet(4, 0, 'd');
  add_packet(5, 64, 'e');
  CHECK(commit(b));
  struct st_readback* r = st_readback_create(0);
  struct st_bytes out = {0};
  begin_read(b);
  CHECK(!st_readback_run(r, b, &out, SIZE_MAX));
  st_decoder_init(&trace, out.data, out.size);
  expect_suffix(1000, 2, 4242, 0, 0);
  expect_packet(1, 3, suffix, suffix_size);
  expect_packet(2, 200, suffix, suffix_size);
  expect_suffix(-1, 3, 0, 0, 0);
  expect_packet(3, 20000, suffix, suffix_size);
  expect_suffix(1000, 2, 4242, 0, ST_LOSS_PRESENT | ST_LOSS_READ_GAP);
  expect_packet(4, 0, suffix, suffix_size);
  expect_suffix(1000, 2, 4242, 0, 0);
  expect_packet(5, 64, suffix, suffix_size);
  CHECK_EQ(st_decoder_left(&trace), 0);
  CHECK_EQ(st_readback_packets(r), 5);
  CHECK_EQ(st_readback_invalid_packets(r), 0);
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
}

static void trusted_fields_with_the_largest_values_fit(void) {
  struct st_trace_buffer* b = ring(65536);
  st_trace_buffer_set_producer(b, 1, UINT32_MAX, INT32_MAX);
  chunk(1, 1, 0);
  flags(FIRST_CONTINUES);
  add(1, 'x');
  add_packet(1, 1, 'a');
  CHECK(commit(b));
  struct st_readback* r = st_readback_create(UINT32_MAX);
  struct st_bytes out = {0};
  begin_read(b);
  CHECK(!st_readback_run(r, b, &out, SIZE_MAX));
  st_decoder_init(&trace, out.data, out.size);
  expect_suffix(-1, 2, INT32_MAX, UINT32_MAX,
                ST_LOSS_PRESENT | ST_LOSS_ORPHAN_CONTINUATION);
  expect_packet(1, 1, suffix, suffix_size);
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
}

static void copy_continues_the_same_sequence_ids(void) {
  struct st_readback* r = st_readback_create(0);
  struct st_readback* empty = st_readback_copy(r);
  CHECK_EQ(st_readback_sequence_id(empty, 9, 9), 2);
  for (uint16_t writer = 1; writer <= 100; writer++)
    CHECK_EQ(st_readback_sequence_id(r, 1, writer), writer + 1);
  struct st_readback* copy = st_readback_copy(r);
  st_readback_destroy(r);
  CHECK_EQ(st_readback_sequence_id(copy, 1, 200), 102);
  CHECK_EQ(st_readback_sequence_id(copy, 1, 50), 51);
  st_readback_destroy(copy);
  st_readback_destroy(empty);
}

static void each_producer_has_its_machine_id(void) {
  struct st_trace_buffer* b = ring(65536);
  st_trace_buffer_set_producer(b, 1, 7, 8);
  st_trace_buffer_set_producer(b, 2, 7, 8);
  st_trace_buffer_set_machine(b, 2, 0xFFFFFFFF);
  for (uint16_t producer = 1; producer <= 2; producer++) {
    chunk(producer, 1, 0);
    add_packet(producer, 1, 'a');
    CHECK(commit(b));
  }
  struct st_readback* r = st_readback_create(0);
  struct st_bytes out = {0};
  begin_read(b);
  CHECK(!st_readback_run(r, b, &out, SIZE_MAX));
  st_decoder_init(&trace, out.data, out.size);
  expect_suffix(7, 2, 8, 0, 0);
  expect_packet(1, 1, suffix, suffix_size);
  expect_suffix(7, 3, 8, UINT32_MAX, 0);
  expect_packet(2, 1, suffix, suffix_size);
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
}

static void trusted_fields_change_with_the_producers_identity(void) {
  struct st_trace_buffer* b = ring(65536);
  struct st_readback* r = st_readback_create(0);
  struct st_bytes out = {0};
  for (uint32_t i = 0; i < 5; i++) {
    st_trace_buffer_set_producer(b, 1, i / 2, (int32_t)(i + 1) / 2);
    chunk(1, 1, i);
    add_packet(i, 1, 'a');
    CHECK(commit(b));
    begin_read(b);
    CHECK(!st_readback_run(r, b, &out, SIZE_MAX));
  }
  st_decoder_init(&trace, out.data, out.size);
  for (uint32_t i = 0; i < 5; i++) {
    expect_suffix(i / 2, 2, (i + 1) / 2, 0, 0);
    expect_packet(i, 1, suffix, suffix_size);
  }
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
}

static void invalid_packets_are_counted(void) {
  struct st_trace_buffer* b = ring(65536);
  chunk(1, 1, 0);
  /* The packet has field 3, which is incomplete. */
  add(1, 0x18);
  /* The packet has field 3, which only the service may set. */
  add_raw("\x02\x18\0", 3, 1);
  add_packet(9, 5, 'a');
  CHECK(commit(b));
  struct st_readback* r = st_readback_create(0);
  struct st_bytes out = {0};
  begin_read(b);
  CHECK(!st_readback_run(r, b, &out, SIZE_MAX));
  CHECK_EQ(st_readback_invalid_packets(r), 2);
  CHECK_EQ(st_readback_packets(r), 1);
  st_decoder_init(&trace, out.data, out.size);
  expect_suffix(0, 2, 0, 0, 0);
  expect_packet(9, 5, suffix, suffix_size);
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
}

static void run_stops_at_the_limit(void) {
  struct st_trace_buffer* b = ring(65536);
  for (uint32_t id = 0; id < 10; id++) {
    chunk(1, 1, id);
    for (uint64_t i = 0; i < 10; i++)
      add_packet(10 * id + i, 100, 'a');
    CHECK(commit(b));
  }
  struct st_readback* r = st_readback_create(0);
  struct st_bytes out = {0};
  int calls = 1;
  size_t before = 0;
  begin_read(b);
  for (; st_readback_run(r, b, &out, 1000); calls++) {
    CHECK(out.size - before >= 1000 && out.size - before < 1200);
    before = out.size;
    if (calls % 3 == 0)
      begin_read(b); /* A new read pass loses no packet. */
  }
  CHECK(calls > 5);
  st_decoder_init(&trace, out.data, out.size);
  expect_suffix(0, 2, 0, 0, 0);
  for (uint64_t i = 0; i < 100; i++)
    expect_packet(i, 100, suffix, suffix_size);
  CHECK_EQ(st_decoder_left(&trace), 0);
  CHECK(st_readback_run(r, b, &out, 0));
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
}

static void sequence_ids_are_assigned_in_order_of_first_packets(void) {
  struct st_readback* r = st_readback_create(0);
  for (int round = 0; round < 2; round++) {
    uint32_t id = 2;
    for (uint32_t producer = 1; producer < 65536; producer += 6553)
      for (uint32_t writer = 1; writer <= 32767; writer += 13)
        CHECK_EQ(
            st_readback_sequence_id(r, (uint16_t)producer, (uint16_t)writer),
            id++);
  }
  st_readback_destroy(r);
  st_readback_destroy(NULL);
}

int main(void) {
  RUN(empty_packet_gets_trusted_fields);
  RUN(reserved_field_numbers_are_refused);
  RUN(reserved_numbers_are_allowed_in_nested_messages);
  RUN(redundantly_encoded_reserved_tags_are_refused);
  RUN(malformed_packets_are_refused);
  RUN(every_truncated_packet_is_refused);
  RUN(trusted_fields_are_appended_in_order);
  RUN(trusted_fields_with_the_largest_values_fit);
  RUN(copy_continues_the_same_sequence_ids);
  RUN(each_producer_has_its_machine_id);
  RUN(trusted_fields_change_with_the_producers_identity);
  RUN(invalid_packets_are_counted);
  RUN(run_stops_at_the_limit);
  RUN(sequence_ids_are_assigned_in_order_of_first_packets);
  return 0;
}
