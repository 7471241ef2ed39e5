/* Measures chunks into a trace buffer and packets out: ours, and Perfetto's.
 *
 * Built as a shared object for bench/_trace_buffer.py.  A round copies as many
 * chunks as the buffer holds and reads all of them back as trace bytes.  For
 * Perfetto only the C++ symbols of a library are available, without headers: an
 * object without a C type is memory of sufficient size (x86-64, Itanium C++
 * ABI).  Perfetto's read only copies the packets' slices; ours also validates
 * them and adds the trusted fields, which Perfetto's service does elsewhere. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "readback.h"
#include "wire.h"

enum { PRODUCER = 1, WRITER = 1, UID = 1000, PID = 12345, RING = 0 };
enum { PIECE = 1 << 20, CHUNK_HEADER = 16 };

struct figures {
  double in, out; /* Throughput in MB/s. */
};

struct chunk {
  uint8_t payload[1 << 16];
  size_t size;
  uint16_t packets;
};

/* Makes a chunk full of packets with a timestamp and a delimited field. */
static void fill(struct chunk* c, size_t size, size_t packet) {
  memset(c, 0, sizeof *c);
  for (size_t at = 0; at + packet + 2 <= size; c->packets++) {
    uint8_t* p = st_put_varint(c->payload + at, packet);
    const uint8_t* end = p + packet;
    p = st_put_u64_field(p, 8, 1234567);
    p = st_put_tag(p, 11, ST_WIRE_DELIMITED);
    size_t rest = (size_t)(end - p) - (packet > 127 ? 2 : 1);
    p = st_put_varint(p, rest);
    memset(p, 'a', rest);
    at = (size_t)(end - c->payload);
  }
  c->size = size;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The functions of one trace buffer implementation. `read` appends all packets
 * to `out` and returns the number of packets. */
struct kind {
  bool (*copy)(void* buffer, const struct chunk* c, uint32_t chunk_id);
  size_t (*read)(void* buffer, struct st_bytes* out);
};

/* Runs one round.  Returns false if some packets were not read back. */
static bool run(const struct kind* k, void* buffer, size_t ring_bytes,
                const struct chunk* c, int rounds, struct figures* figures) {
  static uint32_t chunk_id;
  struct st_bytes out = {0};
  size_t chunks = ring_bytes / (c->size + CHUNK_HEADER);
  double mb = (double)(chunks * c->size) * 1e-6;
  bool good = true;
  for (int i = -1; good && i < rounds;
       i++) { /* The first round maps the memory; its time is ignored. */
    double start = now();
    for (size_t n = 0; n < chunks; n++)
      good &= k->copy(buffer, c, chunk_id++);
    double written = now();
    good &= k->read(buffer, &out) == chunks * c->packets;
    if (i >= 0) {
      figures[i].in = mb / (written - start);
      figures[i].out = mb / (now() - written);
    }
  }
  free(out.data);
  return good;
}

/* --- our trace buffer --- */

static bool our_copy(void* buffer, const struct chunk* c, uint32_t chunk_id) {
  struct st_chunk_copy copy = {
      .producer_id = PRODUCER,
      .writer_id = WRITER,
      .chunk_id = chunk_id,
      .fragments = c->packets,
      .complete = true,
      .payload = c->payload,
      .payload_size = c->size,
  };
  return st_trace_buffer_copy_chunk(buffer, &copy);
}

static size_t our_read(void* buffer, struct st_bytes* out) {
  struct st_readback* r = st_readback_create(0);
  st_trace_buffer_begin_read(buffer);
  do
    out->size = 0;
  while (st_readback_run(r, buffer, out, PIECE));
  size_t packets = st_readback_packets(r);
  st_readback_destroy(r);
  return packets;
}

__attribute__((visibility("default"))) bool measure_ours(
    size_t ring_bytes, size_t chunk_size, size_t packet, int rounds,
    struct figures* figures) {
  static const struct kind ours = {our_copy, our_read};
  static struct chunk c;
  fill(&c, chunk_size, packet);
  struct st_trace_buffer* b = st_trace_buffer_create(ring_bytes, ST_RING, -1);
  st_trace_buffer_set_producer(b, PRODUCER, UID, PID);
  bool good = run(&ours, b, ring_bytes, &c, rounds, figures);
  st_trace_buffer_destroy(b);
  return good;
}

/* --- Perfetto's trace buffer --- */

/* Perfetto's functions; the Python caller stores their addresses in this
 * order. */
struct perfetto {
  void (*create)(void** out, size_t size, int policy);
  void (*destroy)(void* buffer);
  void (*copy)(void* buffer, uint16_t producer, const void* client,
               uint16_t writer, uint32_t chunk, uint16_t fragments,
               uint8_t flags, bool complete, const uint8_t* data, size_t size);
  void (*begin_read)(void* buffer);
  bool (*read)(void* buffer, void* packet, void* sequence, bool* dropped);
  void (*create_packet)(void* packet);
  void (*destroy_packet)(void* packet);
};

struct slice {
  const void* data;
  size_t size;
  void* own_data;
};

/* The beginning of perfetto::TracePacket, with all members that are used
 * here. */
struct packet {
  struct slice *begin, *end;
  uint64_t rest[30];
};

static const struct perfetto* g_perfetto;

static bool perfetto_copy(void* buffer, const struct chunk* c,
                          uint32_t chunk_id) {
  static const uint32_t client[16] = {UID, PID};
  g_perfetto->copy(buffer, PRODUCER, client, WRITER, chunk_id, c->packets, 0,
                   true, c->payload, c->size);
  return true;
}

static size_t perfetto_read(void* buffer, struct st_bytes* out) {
  uint64_t sequence[32];
  bool dropped, more = true;
  size_t packets = 0;
  g_perfetto->begin_read(buffer);
  while (more) {
    struct packet p;
    g_perfetto->create_packet(&p);
    more = g_perfetto->read(buffer, &p, sequence, &dropped);
    packets += more;
    if (out->size >= PIECE)
      out->size = 0;
    for (const struct slice* s = p.begin; s < p.end; s++) {
      memcpy(st_bytes_reserve(out, s->size), s->data, s->size);
      out->size += s->size;
    }
    g_perfetto->destroy_packet(&p);
  }
  return packets;
}

__attribute__((visibility("default"))) bool measure_perfetto(
    const struct perfetto* symbols, size_t ring_bytes, size_t chunk_size,
    size_t packet, int rounds, struct figures* figures) {
  static const struct kind theirs = {perfetto_copy, perfetto_read};
  static struct chunk c;
  fill(&c, chunk_size, packet);
  g_perfetto = symbols;
  void* buffer = NULL;
  symbols->create(&buffer, ring_bytes, RING);
  bool good = buffer && run(&theirs, buffer, ring_bytes, &c, rounds, figures);
  if (buffer) {
    symbols->destroy(buffer);
    /* Perfetto allocates the buffer with operator new, which calls malloc. */
    free(buffer);
  }
  return good;
}
