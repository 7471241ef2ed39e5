/* Runs a trace writer by a script of random or fuzzed bytes, and compares it
 * with a model: each accepted packet must be read complete and in order.  The
 * first packet after lost packets must begin with the mark of a loss.  All
 * packets that were not accepted must be counted.
 *
 *   script:  page size, pages, number of live writers, policy, then steps:
 *            write (in one of three ways) | flush | ensure room |
 *            service frees chunks
 */
#pragma once

#include "chunk_reader.h"
#include "core/trace_writer.h"
#include "message_script.h"

enum {
  MODEL_MAX_PAGES = 6,
  MODEL_SHM_SIZE = MODEL_MAX_PAGES * ST_MAX_PAGE_SIZE,
  MODEL_MAX_PACKETS = 8192,
  MODEL_FILLER_FIELD = 15,
};

struct expected_packet {
  uint8_t* data; /* The packet in its canonical form. */
  size_t size;
  bool after_loss;
};

struct model {
  struct script script;
  struct chunk_reader reader;
  struct st_arbiter arbiter;
  struct st_trace_writer writer;
  struct expected_packet expected[MODEL_MAX_PACKETS];
  size_t accepted, dropped, seen;
  bool lost; /* Whether a packet was lost since the last accepted packet. */
};

/* The model of the running test.  While its writer waits for a chunk, its
 * service frees one. */
static struct model* stalled_model;

static void model_sleep(uint32_t us) {
  (void)us;
  reader_free_one(&stalled_model->reader);
}

static inline void model_expect(struct model* m, bool accepted,
                                const uint8_t* data, size_t size) {
  if (!accepted) {
    m->dropped++;
    m->lost = true;
    return;
  }
  struct expected_packet* e = &m->expected[m->accepted++];
  e->after_loss = m->lost;
  e->size = size;
  e->data = malloc(size ? size : 1);
  CHECK(e->data);
  if (size > 0)
    memcpy(e->data, data, size);
  m->lost = false;
}

/* Makes the payload of a packet of exactly `size` bytes (not 1), as one
 * field. */
static inline size_t filler(uint8_t* out, size_t size, uint32_t salt) {
  if (size < 2)
    return 0;
  size_t length = size - 2;
  if (st_varint_size(length) > 1)
    length = size - 1 - st_varint_size(length);
  uint8_t* p = st_put_tag(out, MODEL_FILLER_FIELD, ST_WIRE_DELIMITED);
  p = st_put_varint(p, length);
  for (size_t i = 0; i < length; i++)
    *p++ = (uint8_t)(salt + i * 13);
  return (size_t)(p - out);
}

static inline void model_write_reserved(struct model* m) {
  uint8_t bytes[ST_MAX_TAG + 128];
  size_t max = script_byte(&m->script) % 128;
  uint8_t* p = st_trace_writer_reserve(&m->writer, max);
  if (!p)
    return;
  size_t size = filler(bytes, max, (uint32_t)m->accepted);
  CHECK(size <= max);
  memcpy(p, bytes, size);
  st_trace_writer_commit(&m->writer, p + size);
  model_expect(m, true, bytes, size);
}

static inline void model_append(struct model* m) {
  static uint8_t bytes[65536 * 4];
  size_t size = script_byte(&m->script);
  if (size >= 100)
    size = script_u16(&m->script) * (size >= 250 ? 4 : 1);
  if (size >= 200 && size < 250)
    size %= 600;
  size = filler(bytes, size, (uint32_t)m->accepted);
  size_t cut = size ? script_u16(&m->script) % (size + 1) : 0;
  struct st_iovec pieces[] = {
      {bytes, cut}, {NULL, 0}, {bytes + cut, size - cut}};
  model_expect(m, st_trace_writer_append(&m->writer, pieces, 3), bytes, size);
}

static inline void model_stream(struct model* m) {
  static struct plain_message plain;
  unsigned steps = script_byte(&m->script);
  struct st_message* root = st_trace_writer_begin_packet(&m->writer);
  script_message(&m->script, root, &plain, steps % 40);
  bool accepted = st_trace_writer_end_packet(&m->writer);
  model_expect(m, accepted, plain.levels[0].data, plain.levels[0].size);
}

/* Checks, between packets, that a scraper sees every finished packet. */
static inline void check_scrapable(struct model* m, size_t before) {
  const struct st_trace_writer* w = &m->writer;
  if (!w->chunk.size)
    return;
  unsigned raw = atomic_load(&st_chunk_header(&w->chunk)->packets);
  unsigned count = raw & ST_PACKETS_COUNT_MASK;
  CHECK(count >= 1 && count < ST_MAX_PACKETS_PER_CHUNK);
  CHECK(w->cur < w->end);
  if (m->accepted > before)
    CHECK(count >= 2);
}

static inline void model_step(struct model* m) {
  size_t before = m->accepted;
  uint8_t step = script_byte(&m->script);
  switch (step % 16) {
    case 0:
    case 1:
    case 2:
      model_append(m);
      break;
    case 3:
    case 4:
      model_stream(m);
      break;
    case 5:
      st_trace_writer_flush(&m->writer);
      break;
    case 6: {
      size_t room = script_u16(&m->script) % 260;
      bool have = st_trace_writer_ensure_room(&m->writer, room);
      CHECK(!have || st_trace_writer_room(&m->writer) >= room);
      if (!have)
        m->lost = true;
      break;
    }
    case 7:
    case 8:
    case 9:
      for (unsigned n = step / 16; n > 0; n--)
        reader_free_one(&m->reader);
      break;
    default:
      model_write_reserved(m);
      break;
  }
  check_scrapable(m, before);
}

/* Checks the fields that the writer itself puts before a packet's own fields.
 * Returns the address of the packet's own fields. */
static inline const uint8_t* expect_prefix(const uint8_t* p, size_t size,
                                           bool after_loss, bool first) {
  static const uint8_t kLoss[] = {0xD0, 0x02, 0x81, 0x02};
  static const uint8_t kFirst[] = {0xB8, 0x05, 0x01};
  if (after_loss) {
    CHECK(size >= sizeof kLoss && memcmp(p, kLoss, sizeof kLoss) == 0);
    p += sizeof kLoss;
    size -= sizeof kLoss;
  }
  if (first) {
    CHECK(size >= sizeof kFirst && memcmp(p, kFirst, sizeof kFirst) == 0);
    p += sizeof kFirst;
  }
  return p;
}

static void model_check_packet(void* self, const uint8_t* packet, size_t size) {
  static uint8_t canonical[2 << 20];
  struct model* m = self;
  /* The reader skips empty packets, so the model skips them as well. */
  while (m->seen < m->accepted && m->expected[m->seen].size == 0 &&
         m->seen > 0 && !m->expected[m->seen].after_loss)
    m->seen++;
  CHECK(m->seen < m->accepted);
  struct expected_packet* e = &m->expected[m->seen];
  const uint8_t* body =
      expect_prefix(packet, size, e->after_loss, m->seen == 0);
  CHECK(size <= sizeof canonical - 256);
  size_t n = canonicalise(body, packet + size, canonical);
  CHECK_EQ(n, e->size);
  CHECK(memcmp(canonical, e->data, n) == 0);
  m->seen++;
}

static inline void model_reset(struct model* m, const uint8_t* data,
                               size_t size) {
  memset(m, 0, offsetof(struct model, expected));
  m->script = (struct script){data, data + size};
  m->accepted = m->dropped = m->seen = 0;
  m->lost = false;
}

static inline void model_finish(struct model* m) {
  uint16_t id = m->writer.writer_id;
  CHECK_EQ(m->writer.packets_written, m->accepted);
  CHECK_EQ(m->writer.packets_dropped, m->dropped);
  st_trace_writer_destroy(&m->writer);
  CHECK_EQ(m->reader.registered, 1);
  CHECK_EQ(m->reader.unregistered, 1);
  unsigned cut = reader_packets(&m->reader, id, model_check_packet, m);
  CHECK(cut <= m->dropped);
  while (m->seen < m->accepted)
    CHECK_EQ(m->expected[m->seen++].size, 0);
  while (reader_free_one(&m->reader))
    continue;
  for (uint32_t page = 0; page < m->reader.shm.num_pages; page++)
    CHECK_EQ(st_page_bitmap(&m->reader.shm, page), 0);
  for (size_t i = 0; i < m->accepted; i++)
    free(m->expected[i].data);
  st_arbiter_destroy(&m->arbiter);
  reader_destroy(&m->reader);
}

static inline void run_model(const uint8_t* data, size_t size) {
  static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[MODEL_SHM_SIZE];
  static struct model m;
  model_reset(&m, data, size);
  uint32_t page_size = (1u + script_byte(&m.script) % 16) * ST_MIN_PAGE_SIZE;
  uint32_t pages = 1 + script_byte(&m.script) % MODEL_MAX_PAGES;
  memset(memory, 0, (size_t)pages * page_size);
  struct st_shm shm;
  CHECK(st_shm_init(&shm, memory, (size_t)pages * page_size, page_size));
  reader_init(&m.reader, &shm);
  CHECK(st_arbiter_init(&m.arbiter, &shm, &kReaderSink, &m.reader));
  m.arbiter.live_writers = script_byte(&m.script) % 32;
  m.arbiter.wait_hooks.sleep_us = model_sleep;
  m.reader.free_at_once = script_byte(&m.script) % 8 == 0;
  stalled_model = &m;
  enum st_exhausted_policy policy = script_byte(&m.script) % 3;
  CHECK(st_trace_writer_init(&m.writer, &m.arbiter, 5, policy));
  while (m.script.p < m.script.end && m.accepted < MODEL_MAX_PACKETS)
    model_step(&m);
  model_finish(&m);
}
