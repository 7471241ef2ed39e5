/* Fuzzes the filter with any message: the output must not be longer than the
 * input, must be well-formed, must contain only allowed fields, and must pass
 * the filter again unchanged except for the width of lengths. */
#define CHECK_ABORTS
#include <string.h>

#include "check.h"
#include "decoder.h"
#include "filter_code.h"
#include "message_filter.h"

static bool shout(void* context, uint8_t* data, size_t size, uint32_t type) {
  (void)context;
  CHECK(type == 0 || type == 3);
  memset(data, 'X', size);
  return true;
}

static struct st_message_filter* filter(void) {
  static struct st_filter_bytecode bytecode;
  static struct st_message_filter f;
  if (!f.bytecode) {
    struct code code =
        CODE(NESTED(1, 1), SIMPLE(2), NESTED(3, 0), RANGE(100, 60), END,
             SIMPLE(1), STRING(2), TYPED(3, 3), NESTED(4, 1), END);
    CHECK(!st_filter_bytecode_load(&bytecode, code.data, code.size, NULL, 0));
    f = (struct st_message_filter){
        .bytecode = &bytecode, .string_filter = shout, .context = &f};
  }
  return &f;
}

static void check_message(const uint8_t* data, size_t size, uint32_t message) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    uint32_t rule =
        st_filter_bytecode_query(filter()->bytecode, message, f.number);
    CHECK(rule != ST_FILTER_DENIED);
    if (f.wire_type != ST_WIRE_DELIMITED)
      CHECK_EQ(rule, ST_FILTER_RULE_SIMPLE);
    else if (st_filter_is_nested(rule))
      check_message(f.data, f.size, st_filter_nested_message(rule));
    else if (st_filter_is_string(rule))
      for (size_t i = 0; i < f.size; i++)
        CHECK_EQ(f.data[i], 'X');
  }
  CHECK_EQ(st_decoder_left(&d), 0);
}

static void check_trace(const uint8_t* data, size_t size) {
  uint8_t* out = malloc(size + !size);
  struct st_filter_counts counts;
  if (st_message_filter_run_trace(filter(), data, size, out, &counts)) {
    CHECK(counts.out_size <= size && counts.malformed <= counts.packets);
    struct st_decoder d;
    struct st_field f;
    st_decoder_init(&d, out, counts.out_size);
    while (st_decoder_next(&d, &f))
      check_message(f.data, f.size, 0);
    CHECK_EQ(st_decoder_left(&d), 0);
  }
  free(out);
}

static void check_filter(const uint8_t* data, size_t size) {
  /* The output buffers have exactly the size that the filter requires. */
  uint8_t *out = malloc(size + !size), *again = malloc(size + !size);
  size_t n, m;
  if (st_message_filter_run(filter(), data, size, out, &n) == ST_FILTER_DONE) {
    CHECK(n <= size);
    check_message(out, n, 0);
    CHECK_EQ(st_message_filter_run(filter(), out, n, again, &m),
             ST_FILTER_DONE);
    CHECK(m <= n);
    check_message(again, m, 0);
  }
  free(out);
  free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  enum { COPIES = 16, ROOM = ST_MAX_TAG + ST_MAX_VARINT };
  check_filter(data, size);
  check_trace(data, size);
  /* Nests the message until its length takes more than one byte, and filters
   * it. Then filters it as two packets of a trace. */
  uint8_t* copies = malloc(COPIES * size + 1);
  uint8_t* wrapped = malloc(COPIES * size + 2 * ROOM);
  for (size_t i = 0; size && i < COPIES; i++)
    memcpy(copies + i * size, data, size);
  uint8_t* end = st_put_bytes_field(wrapped, 3, copies, COPIES * size);
  check_filter(wrapped, (size_t)(end - wrapped));
  end = st_put_bytes_field(wrapped, 1, copies, size);
  end = st_put_bytes_field(end, 1, copies, size);
  check_trace(wrapped, (size_t)(end - wrapped));
  free(copies);
  free(wrapped);
  return 0;
}
