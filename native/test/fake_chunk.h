/* Test fixture for trace buffers: builds chunks, and checks the packets read
 * from them.
 *
 *   chunk(1, 2, 0);            producer, writer, chunk id
 *   add(20, 'a');              a packet of 20 times 'a'
 *   CHECK(commit(b));
 *   begin_read(b);
 *   expect(b, 20, 'a');
 *   expect_nothing(b);
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "shm_abi.h"
#include "trace_buffer.h"
#include "wire.h"

enum {
  FIRST_CONTINUES = ST_CHUNK_FIRST_CONTINUES,
  LAST_CONTINUES = ST_CHUNK_LAST_CONTINUES,
  NEEDS_PATCHING = ST_CHUNK_NEEDS_PATCHING,
};

static uint8_t fake_payload[65536];
static struct st_chunk_copy fake;
static struct st_packet got; /* The packet that the test has read last. */

static inline void chunk(uint16_t producer, uint16_t writer, uint32_t id) {
  memset(fake_payload, 0, sizeof fake_payload);
  fake = (struct st_chunk_copy){
      .producer_id = producer,
      .writer_id = writer,
      .chunk_id = id,
      .payload = fake_payload,
  };
}

static inline void flags(uint8_t chunk_flags) {
  fake.flags = chunk_flags;
}

/* Appends bytes to the chunk unchanged, and adds `fragments` to the chunk's
 * number of fragments. */
static inline void add_raw(const void* data, size_t size, uint16_t fragments) {
  memcpy(fake_payload + fake.payload_size, data, size);
  fake.payload_size += size;
  fake.fragments = (uint16_t)(fake.fragments + fragments);
}

static inline void add(size_t size, char fill) {
  uint8_t header[ST_MAX_VARINT];
  add_raw(header, (size_t)(st_put_varint(header, size) - header), 1);
  memset(fake_payload + fake.payload_size, fill, size);
  fake.payload_size += size;
}

/* Sets the size of the chunk's payload.  The bytes after the fragments are
 * unused. */
static inline void pad_to(size_t size) {
  fake.payload_size = size;
}

/* Commits the chunk.  Chunks with an odd id are private, so most tests have
 * chunks that are copied first, and others that are validated first. */
static inline bool commit(struct st_trace_buffer* b) {
  fake.complete = true;
  fake.is_private = fake.chunk_id % 2;
  return st_trace_buffer_copy_chunk(b, &fake);
}

/* Commits the chunk as a scraper does.  A scraper does not count the last
 * fragment of an unfinished chunk, so the chunks here contain only counted
 * fragments. */
static inline bool scrape(struct st_trace_buffer* b) {
  fake.complete = false;
  return st_trace_buffer_copy_chunk(b, &fake);
}

/* Commits a chunk with one packet. */
static inline bool commit_one(struct st_trace_buffer* b, uint16_t writer,
                              uint32_t id, size_t size, char fill) {
  chunk(1, writer, id);
  add(size, fill);
  return commit(b);
}

static inline struct st_trace_buffer* ring(size_t size) {
  struct st_trace_buffer* b = st_trace_buffer_create(size, ST_RING, -1);
  CHECK(b);
  return b;
}

static inline void begin_read(struct st_trace_buffer* b) {
  st_trace_buffer_begin_read(b);
}

/* Reads the next packet into `got`.  Checks the packet's size and content, but
 * not its loss mask. */
static inline void expect_lossy(struct st_trace_buffer* b, size_t size,
                                char fill) {
  CHECK(st_trace_buffer_read_packet(b, &got));
  CHECK_EQ(got.size, size);
  for (size_t i = 0; i < size; i++)
    CHECK_EQ(got.data[i], (uint8_t)fill);
}

static inline void expect(struct st_trace_buffer* b, size_t size, char fill) {
  expect_lossy(b, size, fill);
  CHECK_EQ(got.loss, 0);
}

static inline void expect_loss(struct st_trace_buffer* b, size_t size,
                               char fill, uint32_t loss) {
  expect_lossy(b, size, fill);
  CHECK_EQ(got.loss, loss | ST_LOSS_PRESENT);
}

static inline void expect_nothing(struct st_trace_buffer* b) {
  CHECK(!st_trace_buffer_read_packet(b, &got));
}

static inline struct st_buffer_stats stats_of(struct st_trace_buffer* b) {
  struct st_buffer_stats s;
  st_trace_buffer_stats(b, &s);
  return s;
}
