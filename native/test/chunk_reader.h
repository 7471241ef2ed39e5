/* Chunk reader: a sink that acts like a service.  It copies a producer's
 * chunks, applies patches, frees chunks on request, and reassembles packets.
 *
 * It is stricter than a real service: a fragment without its beginning, a
 * packet without its end, a gap in the chunk ids, or a chunk that is never
 * patched fails the test.
 */
#pragma once

#include <string.h>

#include "check.h"
#include "core/arbiter.h"
#include "core/wire.h"

struct chunk_copy {
  uint16_t writer_id;
  uint32_t target_buffer;
  uint16_t packets; /* A copy of the chunk's bytes. */
  uint32_t chunk_id;
  struct st_chunk place;
  uint8_t* payload;
  size_t size;
};

struct chunk_reader {
  struct st_shm shm;
  struct chunk_copy* chunks;
  size_t count, capacity;
  /* The first chunks of `chunks` are free again: this is their number. */
  size_t freed;
  bool free_at_once;
  unsigned patches, flushes, registered, unregistered;
  bool last_has_more;
  /* How many further calls of congested() return true. */
  unsigned behind;
};

static void reader_chunk_complete(void* self, const struct st_chunk* chunk,
                                  uint32_t target_buffer);
static void reader_patch(void* self, const struct st_chunk_patches* patches);

static void reader_flush(void* self) {
  ((struct chunk_reader*)self)->flushes++;
}
static void reader_register(void* self, uint16_t writer, uint32_t buffer) {
  (void)writer, (void)buffer;
  ((struct chunk_reader*)self)->registered++;
}
static void reader_unregister(void* self, uint16_t writer) {
  (void)writer;
  ((struct chunk_reader*)self)->unregistered++;
}

static bool reader_congested(void* self, uint32_t buffer) {
  (void)buffer;
  struct chunk_reader* r = self;
  return r->behind && r->behind--;
}

static const struct st_commit_sink kReaderSink = {
    .chunk_complete = reader_chunk_complete,
    .patch = reader_patch,
    .flush = reader_flush,
    .register_writer = reader_register,
    .unregister_writer = reader_unregister,
    .congested = reader_congested,
};

/* Frees the oldest chunk that is still in state Complete. */
static inline bool reader_free_one(struct chunk_reader* r) {
  if (r->freed == r->count)
    return false;
  const struct st_chunk* place = &r->chunks[r->freed++].place;
  struct st_chunk chunk;
  CHECK(st_chunk_try_acquire_for_reading(&r->shm, place->page, place->index,
                                         &chunk));
  CHECK(st_chunk_release_as_free(&r->shm, &chunk));
  return true;
}

static void reader_chunk_complete(void* self, const struct st_chunk* chunk,
                                  uint32_t target_buffer) {
  struct chunk_reader* r = self;
  if (r->count == r->capacity) {
    r->capacity = r->capacity ? r->capacity * 2 : 64;
    r->chunks = realloc(r->chunks, r->capacity * sizeof *r->chunks);
    CHECK(r->chunks);
  }
  struct st_chunk_header* header = st_chunk_header(chunk);
  struct chunk_copy copy = {
      .writer_id = atomic_load(&header->writer_id),
      .target_buffer = target_buffer,
      .packets = atomic_load(&header->packets),
      .chunk_id = atomic_load(&header->chunk_id),
      .place = *chunk,
      .payload = malloc(chunk->size),
      .size = chunk->size - ST_CHUNK_HEADER_SIZE,
  };
  CHECK(copy.payload);
  memcpy(copy.payload, chunk->begin + ST_CHUNK_HEADER_SIZE, copy.size);
  r->chunks[r->count++] = copy;
  if (r->free_at_once)
    CHECK(reader_free_one(r));
}

static inline struct chunk_copy* reader_find(struct chunk_reader* r,
                                             uint16_t writer_id,
                                             uint32_t chunk_id) {
  for (size_t i = r->count; i-- > 0;)
    if (r->chunks[i].writer_id == writer_id &&
        r->chunks[i].chunk_id == chunk_id)
      return &r->chunks[i];
  CHECK(!"patch for a chunk that was never returned");
  return NULL;
}

static void reader_patch(void* self, const struct st_chunk_patches* patches) {
  struct chunk_reader* r = self;
  struct chunk_copy* chunk =
      reader_find(r, patches->writer_id, patches->chunk_id);
  const uint16_t flag = ST_CHUNK_NEEDS_PATCHING << ST_PACKETS_FLAGS_SHIFT;
  CHECK(chunk->packets & flag);
  CHECK(patches->count > 0);
  const struct st_patch* p = patches->first;
  for (uint32_t i = 0; i < patches->count; i++, p = p->next) {
    CHECK_EQ(p->chunk_id, patches->chunk_id);
    CHECK(p->offset + (size_t)ST_PATCH_SIZE <= chunk->size);
    CHECK(memcmp(chunk->payload + p->offset, "\0\0\0\0", 4) == 0);
    memcpy(chunk->payload + p->offset, p->size_field, ST_PATCH_SIZE);
    r->patches++;
  }
  r->last_has_more = patches->has_more;
  if (!patches->has_more)
    chunk->packets &= (uint16_t)~flag;
}

static inline void reader_init(struct chunk_reader* r,
                               const struct st_shm* shm) {
  memset(r, 0, sizeof *r);
  r->shm = *shm;
}

static inline void reader_destroy(struct chunk_reader* r) {
  for (size_t i = 0; i < r->count; i++)
    free(r->chunks[i].payload);
  free(r->chunks);
}

typedef void (*packet_callback)(void* context, const uint8_t* packet,
                                size_t size);

struct packet_in_progress {
  uint8_t* data;
  size_t size, capacity;
  bool open;
  uint32_t next_chunk_id;
};

static inline void packet_add(struct packet_in_progress* p, const uint8_t* data,
                              size_t size) {
  if (p->size + size > p->capacity) {
    p->capacity = 2 * (p->size + size);
    p->data = realloc(p->data, p->capacity);
    CHECK(p->data);
  }
  if (size > 0)
    memcpy(p->data + p->size, data, size);
  p->size += size;
}

/* Passes the packets of a chunk to the callback.  Returns the number of packets
 * cut by a drop sentinel (0 or 1). */
static inline unsigned read_fragments(const struct chunk_copy* chunk,
                                      unsigned count,
                                      struct packet_in_progress* packet,
                                      packet_callback emit, void* context) {
  unsigned flags = chunk->packets >> ST_PACKETS_FLAGS_SHIFT;
  const uint8_t *p = chunk->payload, *end = p + chunk->size;
  for (unsigned i = 0; i < count; i++) {
    uint64_t size;
    p = st_get_varint_max(p, end, 4, &size);
    CHECK(p);
    bool continues = i == 0 && (flags & ST_CHUNK_FIRST_CONTINUES);
    CHECK_EQ(continues, packet->open);
    packet->open = false;
    if (!continues)
      packet->size = 0;
    if (size == ST_MAX_MESSAGE_SIZE) {
      CHECK_EQ(i, count - 1);
      CHECK(!(flags & ST_CHUNK_LAST_CONTINUES));
      return 1;
    }
    CHECK(size <= (size_t)(end - p));
    packet_add(packet, p, size);
    p += size;
    if (i == count - 1 && (flags & ST_CHUNK_LAST_CONTINUES))
      packet->open = true;
    else if (packet->size > 0)
      emit(context, packet->data, packet->size);
  }
  return 0;
}

/* Passes the packets of one writer to the callback, in order, without empty
 * ones.  Returns the number of packets that were cut. */
static inline unsigned reader_packets(const struct chunk_reader* r,
                                      uint16_t writer_id, packet_callback emit,
                                      void* context) {
  struct packet_in_progress packet = {0};
  unsigned cut = 0;
  for (size_t i = 0; i < r->count; i++) {
    const struct chunk_copy* c = &r->chunks[i];
    if (c->writer_id != writer_id)
      continue;
    CHECK_EQ(c->chunk_id, packet.next_chunk_id);
    packet.next_chunk_id++;
    CHECK(!(c->packets >> ST_PACKETS_FLAGS_SHIFT & ST_CHUNK_NEEDS_PATCHING));
    unsigned count = c->packets & ST_PACKETS_COUNT_MASK;
    CHECK(count > 0);
    cut += read_fragments(c, count, &packet, emit, context);
  }
  CHECK(!packet.open);
  free(packet.data);
  return cut;
}
