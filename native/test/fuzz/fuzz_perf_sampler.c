/* Fuzzes the records of perf events: the input is a ring buffer of two pages
 * worth of bytes.  Bit 0 of its first byte: samples have stacks; bit 1: the
 * headers are made valid; bit 2: samples have registers and memory, and the input
 * is a file's unwind tables, too.  The written packets must be well-formed. */
#define CHECK_ABORTS
#include "probes/perf_sampler.h"

#include <linux/perf_event.h>

#include "../text_output.h"

enum { RING = 1 << 12 };

static void check_packet(void) {
  struct st_decoder d;
  struct st_field f;
  size_t size = st_message_finalize(&output_root);
  st_decoder_init(&d, output, size);
  while (st_decoder_next(&d, &f))
    continue;
  CHECK_EQ(st_decoder_left(&d), 0);
}

/* Gives each record a type that is read, and a size within the bytes. */
static void make_headers(uint8_t* bytes, size_t size) {
  static const uint8_t kTypes[] = {
      ST_PERF_LOST,   ST_PERF_NAME,    ST_PERF_EXIT,   ST_PERF_FORK,
      ST_PERF_SAMPLE, ST_PERF_MAPPING, ST_PERF_SAMPLE, ST_PERF_SAMPLE};
  for (size_t at = 0; at + ST_PERF_HEADER <= size;) {
    uint32_t type = kTypes[bytes[at] % 8];
    uint16_t length = (uint16_t)(8 * (1 + bytes[at + 6] % 24));
    length = length > size - at ? (uint16_t)((size - at) & ~(size_t)7) : length;
    memcpy(bytes + at, &type, sizeof type);
    memcpy(bytes + at + 6, &length, sizeof length);
    if (type == ST_PERF_SAMPLE && length > 40)
      memset(bytes + at + 25, 0, 7), bytes[at + 24] %= 4;
    at += length;
  }
}

/* Answers every question but those of each seventh address. */
static void answer(struct st_perf_sampler* s, enum st_perf_stop stop,
                   const struct st_elf_file* file) {
  uint64_t at = s->missing & ~UINT64_C(0xFFF);
  if (stop == ST_PERF_NEW_CODE && at % 7)
    st_perf_sampler_add_code(s, at, at + 0x1000, at, at % 3 ? file : NULL);
  if (stop == ST_PERF_NEW_THREAD)
    st_perf_sampler_decide(s, s->record.pid, s->record.pid & 1);
  if (stop == ST_PERF_CHANGE)
    st_perf_sampler_renew(s, s->record.pid);
  for (uint32_t i = 0; stop == ST_PERF_NEW_FRAMES && i < s->unknown_count; i++)
    if (s->unknown[i].address % 7)
      st_perf_sampler_add_frame(s, s->unknown[i].space, s->unknown[i].address,
                                s->unknown[i].address % 64);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static uint8_t bytes[RING], copy[2 * RING], records[RING];
  static struct perf_event_mmap_page page;
  struct st_perf_ring ring = {&page, bytes, RING, 0};
  uint32_t samples = 50;
  if (size < 2)
    return 0;
  unsigned members = (data[0] & 1 ? ST_PERF_CALL_CHAIN : 0u) |
                     (data[0] & 4 ? ST_PERF_USER_STACK : 0u);
  struct st_perf_sampler* s = st_perf_sampler_create(1, members, 1 << 12, 50);
  size = size - 2 < RING ? size - 2 : RING;
  memcpy(records, data + 2, size);
  const struct st_elf_file file = {
      .tables = 64, .table_bytes = records, .table_size = size};
  if (data[0] & 2)
    make_headers(records, size);
  page.data_tail = data[1] * 8u;
  page.data_head = page.data_tail + size;
  for (size_t i = 0; i < size; i++)
    bytes[(page.data_tail + i) % RING] = records[i];
  size_t copied = st_perf_ring_copy(&ring, copy, sizeof copy, &samples);
  CHECK(page.data_tail <= page.data_head && copied <= size);
  st_perf_sampler_add_records(s, 0, copy, copied);
  /* Also without the ring's checks of the sizes. */
  st_perf_sampler_add_records(s, 1, records, size);
  st_perf_sampler_sort(s);
  enum st_perf_stop stop;
  while ((stop = st_perf_sampler_next(s, output_begin())) != ST_PERF_DONE) {
    if (stop == ST_PERF_PACKET)
      check_packet();
    answer(s, stop, &file);
  }
  st_perf_sampler_destroy(s);
  return 0;
}
