/* Fuzzes trace buffers with any sequence of chunks, patches, reads and clones
 * on small buffers.
 *
 * Input: a sequence of commands, one byte each, followed by their operands.
 * Missing operands at the end count as 0. */
#define CHECK_ABORTS
#include "fake_chunk.h"

struct input {
  const uint8_t* cur;
  const uint8_t* end;
};

static uint32_t take(struct input* in, unsigned bytes) {
  uint32_t v = 0;
  for (; bytes; bytes--)
    v = v << 8 | (in->cur < in->end ? *in->cur++ : 0);
  return v;
}

static void check_stats(struct st_trace_buffer* b) {
  struct st_buffer_stats s = stats_of(b);
  CHECK(s.bytes_overwritten <= s.bytes_written);
  CHECK(s.bytes_read <= s.bytes_written);
  CHECK(s.chunks_read + s.chunks_overwritten <=
        s.chunks_written + s.chunks_relocated);
  /* Evicted records are counted as cleared padding, too. */
  CHECK(s.padding_bytes_cleared <= s.padding_bytes_written + s.bytes_written);
  CHECK(st_trace_buffer_unread(b) <= st_trace_buffer_size(b));
}

static void read_packets(struct st_trace_buffer* b, uint32_t limit) {
  uint32_t sum = 0;
  while (limit-- && st_trace_buffer_read_packet(b, &got)) {
    CHECK(got.size);
    CHECK(!got.loss || (got.loss & ST_LOSS_PRESENT));
    for (size_t i = 0; i < got.size; i++)
      sum += got.data[i];
  }
  /* Reads all bytes of a packet, so that ASan checks the accesses. */
  CHECK(sum < UINT32_MAX);
}

static void put_chunk(struct st_trace_buffer* b, struct input* in) {
  uint32_t who = take(in, 1);
  chunk((uint16_t)(1 + who % 2), (uint16_t)(1 + who / 2 % 4), take(in, 1) - 8);
  uint32_t how = take(in, 1);
  flags((uint8_t)(how & 63));
  fake.fragments = (uint16_t)take(in, 1);
  uint32_t kind = how >> 6, size = take(in, 1);
  if (kind & 1) { /* The number of valid fragments in the chunk. */
    uint16_t fragments = fake.fragments % 16;
    fake.fragments = 0;
    for (uint16_t i = 0; i < fragments; i++)
      add(size % 64 + i, 'a');
    pad_to(fake.payload_size + size % 32);
  } else {
    size = size * 17 % 4200;
    for (uint32_t i = 0; i < size && in->cur < in->end; i++)
      fake_payload[i] = *in->cur++;
    pad_to(size);
  }
  if (kind & 2)
    scrape(b);
  else
    commit(b);
}

static void put_patch(struct st_trace_buffer* b, struct input* in) {
  uint32_t who = take(in, 1), id = take(in, 1) - 8;
  struct st_patch_data patch = {.offset = take(in, 1)};
  for (int i = 0; i < 4; i++)
    patch.data[i] = (uint8_t)take(in, 1);
  st_trace_buffer_patch(b, (uint16_t)(1 + who % 2), (uint16_t)(1 + who / 2 % 4),
                        id, &patch, 1, who & 64);
}

static struct st_trace_buffer* swap_for_clone(struct st_trace_buffer* b) {
  struct st_trace_buffer* clone = st_trace_buffer_clone(b);
  CHECK(clone);
  st_trace_buffer_destroy(b);
  return clone;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct input in = {data, data + size};
  uint32_t kind = take(&in, 1);
  struct st_trace_buffer* b = st_trace_buffer_create(
      kind & 2 ? 4096 : 8192, kind & 1 ? ST_DISCARD : ST_RING, -1);
  CHECK(b);
  while (in.cur < in.end) {
    uint32_t command = take(&in, 1);
    if (command < 160)
      put_chunk(b, &in);
    else if (command < 190)
      put_patch(b, &in);
    else if (command < 220)
      read_packets(b, command - 190);
    else if (command < 250)
      begin_read(b);
    else
      b = swap_for_clone(b);
    check_stats(b);
  }
  begin_read(b);
  read_packets(b, UINT32_MAX);
  check_stats(b);
  st_trace_buffer_destroy(b);
  return 0;
}
