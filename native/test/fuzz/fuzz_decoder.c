/* Fuzzes the decoder with any bytes: fields must be inside the input, and
 * decoding must end.  A packet that validation accepts must decode to its end
 * without a reserved field. */
#define CHECK_ABORTS
#include "check.h"
#include "decoder.h"
#include "readback.h"

static void check_valid_packet(const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    CHECK(f.number != 3 && f.number != 10 && f.number != 79);
    CHECK(f.number != 36 && f.number != 50 && f.number != 98);
  }
  CHECK_EQ(st_decoder_left(&d), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    CHECK(f.number);
    if (f.wire_type != ST_WIRE_DELIMITED)
      continue;
    CHECK(f.data >= data && f.size <= (size_t)(data + size - f.data));
  }
  if (st_packet_is_valid(data, size))
    check_valid_packet(data, size);
  return 0;
}
