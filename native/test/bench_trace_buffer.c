/* Measures the throughput of a trace buffer: chunks in, packets out.
 *
 *   bench_trace_buffer [MB]
 *
 * It uses chunks of 32 KiB and 4 KiB, and packets of 14 bytes (a track event)
 * and 500 bytes.  Figures are MB/s of chunk payload on one thread, medians of
 * seven rounds. */
#include <time.h>

#include "fake_chunk.h"
#include "readback.h"

enum { ROUNDS = 7 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* rounds) {
  qsort(rounds, ROUNDS, sizeof *rounds, compare);
  return rounds[ROUNDS / 2];
}

/* Makes a chunk full of packets { timestamp, one delimited field }. */
static void make_chunk(size_t payload, size_t packet) {
  uint8_t head[16], *p = st_put_u64_field(head, 8, 1234567);
  size_t head_size = (size_t)(p - head);
  chunk(1, 1, 0);
  while (fake.payload_size + packet + 2 < payload) {
    size_t start = fake.payload_size;
    add(packet, 'a');
    uint8_t* data = fake_payload + fake.payload_size - packet;
    size_t rest = packet - head_size - (packet > 127 ? 3 : 2);
    memcpy(data, head, head_size);
    p = st_put_varint(st_put_tag(data + head_size, 11, ST_WIRE_DELIMITED),
                      rest);
    CHECK(p + rest == data + packet && fake.payload_size > start);
  }
  size_t used = fake.payload_size;
  pad_to(payload);
  CHECK(used <= payload);
}

/* Runs one round: writes `bytes` into a ring that was used before, and reads
 * these bytes back. */
static void run_round(struct st_trace_buffer* b, struct st_bytes* out,
                      size_t bytes, double* in_rate, double* out_rate) {
  struct st_readback* r = st_readback_create(0);
  size_t chunks = bytes / (fake.payload_size + 16);
  double start = now();
  for (size_t i = 0; i < chunks; i++, fake.chunk_id++)
    CHECK(commit(b));
  double written = now();
  begin_read(b);
  uint64_t size = 0;
  for (bool more = true; more;) {
    out->size = 0;
    more = st_readback_run(r, b, out, 1 << 20);
    size += out->size;
  }
  double end = now();
  CHECK_EQ(st_readback_packets(r), chunks * fake.fragments);
  CHECK(size > bytes / 2);
  double mb = (double)(chunks * fake.payload_size) * 1e-6;
  *in_rate = mb / (written - start);
  *out_rate = mb / (end - written);
  st_readback_destroy(r);
}

static void measure(size_t megabytes, size_t payload, size_t packet) {
  size_t bytes = megabytes << 20;
  struct st_trace_buffer* b = ring(bytes);
  st_trace_buffer_set_producer(b, 1, 1000, 12345);
  struct st_bytes out = {0};
  double in[ROUNDS], back[ROUNDS];
  make_chunk(payload, packet);
  /* The first round touches all memory for the first time, so it is not
   * counted. */
  run_round(b, &out, bytes, in, back);
  for (int i = 0; i < ROUNDS; i++)
    run_round(b, &out, bytes, &in[i], &back[i]);
  printf(
      "chunk %5zu packet %3zu (%4d of them): in %6.0f MB/s, out %6.0f "
      "MB/s\n",
      payload, packet, fake.fragments, median(in), median(back));
  free(out.data);
  st_trace_buffer_destroy(b);
}

int main(int argc, char** argv) {
  size_t megabytes = argc > 1 ? (size_t)atol(argv[1]) : 32;
  measure(megabytes, 32744, 14);
  measure(megabytes, 32744, 500);
  measure(megabytes, 4080, 14);
  measure(megabytes, 4080, 500);
  return 0;
}
