/* Fuzzes read-back with any fragments as packets: each packet of the trace must
 * be valid, and must end with the trusted fields. */
#define CHECK_ABORTS
#include "decoder.h"
#include "fake_chunk.h"
#include "readback.h"

static void check_packet(const uint8_t* data, size_t size) {
  static const uint8_t trusted[] = {3 << 3, 1, 10 << 3, 2, 0xF8, 4, 7};
  CHECK(size >= sizeof trusted);
  size_t own = size - sizeof trusted;
  if (!memcmp(data + own, trusted, sizeof trusted)) {
    CHECK(st_packet_is_valid(data, own));
    return;
  }
  /* Reads the loss mask at the end of a packet: a tag of two bytes and a value
   * of one or two bytes. */
  struct st_decoder d;
  struct st_field f;
  uint32_t last = 0;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f))
    last = f.number;
  CHECK_EQ(st_decoder_left(&d), 0);
  CHECK_EQ(last, 42);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct st_trace_buffer* b = ring(16384);
  st_trace_buffer_set_producer(b, 1, 1, 7);
  for (uint32_t id = 0; size >= 3; id++) {
    size_t n = data[1] % 200;
    if (n > size - 3)
      n = size - 3;
    chunk(1, 1, id);
    flags(data[0] & 3);
    fake.fragments = data[2] % 8;
    uint16_t fragments = fake.fragments;
    add_raw(data + 3, n, 0);
    fake.fragments = fragments;
    commit(b);
    data += 3 + n;
    size -= 3 + n;
  }
  struct st_readback* r = st_readback_create(0);
  struct st_bytes out = {0};
  begin_read(b);
  while (st_readback_run(r, b, &out, 100)) {
  }
  struct st_decoder trace;
  struct st_field f;
  uint64_t packets = 0;
  st_decoder_init(&trace, out.data, out.size);
  for (; st_decoder_next(&trace, &f); packets++)
    check_packet(f.data, f.size);
  CHECK_EQ(st_decoder_left(&trace), 0);
  CHECK_EQ(packets, st_readback_packets(r));
  free(out.data);
  st_readback_destroy(r);
  st_trace_buffer_destroy(b);
  return 0;
}
