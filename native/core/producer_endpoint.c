#include "producer_endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "chunk_fragments.h"
#include "producer_endpoint_internal.h"
#include "wire.h"

enum {
  MAX_BUFFER_ID = 65535,
  MAX_WRITERS = 65536,
  PATCHES_AT_ONCE = 64,
  WRITERS_SIZE = MAX_WRITERS * sizeof(uint32_t),
  TABLES_SIZE = WRITERS_SIZE + (MAX_BUFFER_ID + 1) / 8,
};

/* The tables are mapped, as few of their pages are ever used: the heap would
 * clear all of them, for each producer, once it has had a block of this size. */
static void map_tables(struct st_producer_endpoint* e) {
  void* tables = mmap(NULL, TABLES_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  e->writer_buffer = tables == MAP_FAILED ? NULL : tables;
  e->allowed =
      tables == MAP_FAILED ? NULL : (uint8_t*)tables + (size_t)WRITERS_SIZE;
}

bool st_producer_endpoint_init(struct st_producer_endpoint* e,
                               uint16_t producer_id,
                               struct st_buffer_table* buffers) {
  memset(e, 0, sizeof *e);
  e->producer_id = producer_id;
  e->buffers = buffers;
  pthread_mutex_init(&e->mutex, NULL);
  map_tables(e);
  if (e->writer_buffer)
    return true;
  st_producer_endpoint_destroy(e);
  return false;
}

void st_producer_endpoint_destroy(struct st_producer_endpoint* e) {
  if (e->writer_buffer)
    munmap(e->writer_buffer, TABLES_SIZE);
  e->allowed = NULL;
  e->writer_buffer = NULL;
  pthread_mutex_destroy(&e->mutex);
}

void st_producer_endpoint_set_shm(struct st_producer_endpoint* e,
                                  const struct st_shm* shm) {
  e->shm = *shm;
  atomic_store(&e->pages_used, shm->num_pages);
}

void st_producer_endpoint_set_own_shm(struct st_producer_endpoint* e,
                                      const struct st_shm* shm) {
  e->shm = *shm;
  atomic_store(&e->pages_used, 0);
}

void st_producer_endpoint_allow_buffer(struct st_producer_endpoint* e,
                                       uint16_t buffer, bool allow) {
  uint8_t bit = (uint8_t)(1u << (buffer & 7));
  pthread_mutex_lock(&e->mutex);
  if (allow)
    e->allowed[buffer / 8] |= bit;
  else
    e->allowed[buffer / 8] &= (uint8_t)~bit;
  pthread_mutex_unlock(&e->mutex);
}

static bool is_allowed(const struct st_producer_endpoint* e, uint64_t buffer) {
  return buffer && buffer <= MAX_BUFFER_ID &&
         (e->allowed[buffer / 8] >> (buffer & 7) & 1);
}

static void set_writer_buffer(struct st_producer_endpoint* e,
                              uint32_t writer_id, uint32_t buffer_plus_one) {
  pthread_mutex_lock(&e->mutex);
  uint32_t* stored = &e->writer_buffer[(uint16_t)writer_id];
  e->registered_writers += (buffer_plus_one != 0) - (*stored != 0);
  *stored = buffer_plus_one;
  pthread_mutex_unlock(&e->mutex);
}

void st_producer_endpoint_register_writer(struct st_producer_endpoint* e,
                                          uint32_t writer_id, uint32_t buffer) {
  set_writer_buffer(e, writer_id, (uint16_t)buffer + 1u);
}

void st_producer_endpoint_unregister_writer(struct st_producer_endpoint* e,
                                            uint32_t writer_id) {
  set_writer_buffer(e, writer_id, 0);
}

void st_producer_endpoint_adopt_writers(struct st_producer_endpoint* e,
                                        uint16_t buffer) {
  pthread_mutex_lock(&e->mutex);
  e->adoptive_buffer = buffer;
  pthread_mutex_unlock(&e->mutex);
}

void st_endpoint_count(struct st_producer_endpoint* e, uint64_t* counter,
                       uint64_t n) {
  pthread_mutex_lock(&e->mutex);
  *counter += n;
  pthread_mutex_unlock(&e->mutex);
}

struct st_chunk_copy st_endpoint_read_header(
    const struct st_producer_endpoint* e, struct st_chunk_header* h) {
  uint16_t packets = atomic_load_explicit(&h->packets, memory_order_acquire);
  return (struct st_chunk_copy){
      .producer_id = e->producer_id,
      .writer_id = atomic_load_explicit(&h->writer_id, memory_order_relaxed),
      .chunk_id = atomic_load_explicit(&h->chunk_id, memory_order_relaxed),
      .fragments = packets & ST_PACKETS_COUNT_MASK,
      .flags = (uint8_t)(packets >> ST_PACKETS_FLAGS_SHIFT),
  };
}

void st_endpoint_trust_finished(struct st_chunk_copy* copy) {
  copy->complete = false;
  if (!copy->fragments)
    return;
  copy->fragments--;
  copy->flags &= ST_CHUNK_FIRST_CONTINUES;
}

/* Returns the target buffer if the writer may write to it.  The producer must
 * be allowed to use that buffer.  If the writer is registered, it must be
 * registered for that buffer.  Called with the mutex held. */
static struct st_trace_buffer* acquire_target(struct st_producer_endpoint* e,
                                              uint16_t writer,
                                              uint16_t target) {
  uint32_t registered = e->writer_buffer[writer];
  bool allowed =
      is_allowed(e, target) && (!registered || registered == target + 1u);
  return allowed ? st_buffer_table_acquire(e->buffers, target) : NULL;
}

void st_endpoint_copy_chunk(struct st_producer_endpoint* e,
                            const struct st_chunk_copy* copy,
                            uint32_t target_buffer) {
  struct st_trace_buffer* buffer =
      acquire_target(e, copy->writer_id, (uint16_t)target_buffer);
  if (!buffer) {
    e->stats.chunks_discarded++;
    return;
  }
  st_trace_buffer_copy_chunk(buffer, copy);
  st_buffer_table_release(e->buffers, (uint16_t)target_buffer);
}

static void move_chunk(struct st_producer_endpoint* e, uint32_t page,
                       uint32_t chunk, uint32_t target_buffer,
                       bool is_private) {
  struct st_chunk c;
  if (page >= e->shm.num_pages || chunk >= ST_MAX_CHUNKS_PER_PAGE ||
      !st_chunk_try_acquire_for_reading(&e->shm, page, chunk, &c))
    return; /* There is no chunk to move to a buffer, so no data is lost. */
  struct st_chunk_copy copy = st_endpoint_read_header(e, st_chunk_header(&c));
  copy.complete = true;
  copy.is_private = is_private;
  copy.payload = c.begin + ST_CHUNK_HEADER_SIZE;
  copy.payload_size = c.size - ST_CHUNK_HEADER_SIZE;
  /* While this chunk is copied and freed, the mutex keeps scrapers from copying
   * it.  Without the mutex, an older copy by a scraper could reach the buffer
   * after the copy that is made here.  Or a scraper's copy could contain bytes
   * of the chunk's next writer. */
  pthread_mutex_lock(&e->mutex);
  st_endpoint_copy_chunk(e, &copy, target_buffer);
  st_chunk_release_as_free(&e->shm, &c);
  pthread_mutex_unlock(&e->mutex);
}

void st_producer_endpoint_move_chunk(struct st_producer_endpoint* e,
                                     uint32_t page, uint32_t chunk,
                                     uint32_t target_buffer) {
  move_chunk(e, page, chunk, target_buffer, false);
}

/* Copies one chunk for a scrape.  Returns the chunk's target buffer, or 0 if
 * there is nothing to copy.  The caller holds the mutex, so the chunk cannot
 * become free meanwhile. */
static uint16_t scrape_chunk(struct st_producer_endpoint* e, uint32_t page,
                             uint32_t index, struct st_chunk_copy* copy,
                             uint8_t* scratch) {
  uint32_t bitmap = st_page_bitmap(&e->shm, page);
  enum st_chunk_state state = st_bitmap_state(bitmap, index);
  struct st_chunk c;
  if ((state != ST_CHUNK_COMPLETE && state != ST_CHUNK_BEING_WRITTEN) ||
      !st_chunk_at(&e->shm, page, st_bitmap_layout(bitmap), index, &c))
    return 0;
  *copy = st_endpoint_read_header(e, st_chunk_header(&c));
  uint32_t registered = e->writer_buffer[copy->writer_id];
  uint16_t target =
      registered ? (uint16_t)(registered - 1) : e->adoptive_buffer;
  if (!target)
    return 0;
  const uint8_t* payload = c.begin + ST_CHUNK_HEADER_SIZE;
  copy->complete = state == ST_CHUNK_COMPLETE;
  copy->is_private = true;
  copy->payload = scratch;
  copy->payload_size = c.size - ST_CHUNK_HEADER_SIZE;
  if (copy->complete) {
    memcpy(scratch, payload, copy->payload_size);
    return target;
  }
  if (copy->fragments < 2)
    return 0;
  st_endpoint_trust_finished(copy);
  st_copy_fragments(payload, copy->payload_size, copy->fragments, scratch);
  return target;
}

static bool is_one_of(uint16_t id, const uint16_t* ids, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (ids[i] == id)
      return true;
  return false;
}

/* Returns whether a chunk may have a target buffer.  If not, a scrape reads no
 * page, and the kernel allocates none of those that were never used. */
static bool has_writers(struct st_producer_endpoint* e) {
  pthread_mutex_lock(&e->mutex);
  bool found = e->registered_writers || e->adoptive_buffer;
  pthread_mutex_unlock(&e->mutex);
  return found;
}

void st_producer_endpoint_scrape(struct st_producer_endpoint* e,
                                 const uint16_t* buffers, size_t n) {
  bool needed = e->shm.num_pages && has_writers(e);
  uint8_t* scratch = needed ? calloc(1, e->shm.page_size) : NULL;
  if (!scratch)
    return;
  uint32_t pages = atomic_load(&e->pages_used);
  for (uint32_t page = 0; page < pages; page++) {
    uint32_t layout = st_bitmap_layout(st_page_bitmap(&e->shm, page));
    uint32_t chunks = st_layout_chunks(layout);
    for (uint32_t i = 0; i < chunks; i++) {
      struct st_chunk_copy copy;
      pthread_mutex_lock(&e->mutex);
      uint16_t target = scrape_chunk(e, page, i, &copy, scratch);
      if (target && is_one_of(target, buffers, n))
        st_endpoint_copy_chunk(e, &copy, target);
      pthread_mutex_unlock(&e->mutex);
    }
  }
  free(scratch);
}

/* The sink of the arbiter if the writers are in the process of the service. */

static void sink_chunk_complete(void* self, const struct st_chunk* chunk,
                                uint32_t target_buffer) {
  move_chunk(self, chunk->page, chunk->index, target_buffer, true);
}

static void sink_patch(void* self, const struct st_chunk_patches* patches) {
  struct st_producer_endpoint* e = self;
  struct st_trace_buffer* buffer =
      st_buffer_table_acquire(e->buffers, (uint16_t)patches->target_buffer);
  if (!buffer) {
    st_endpoint_count(e, &e->stats.patches_discarded, patches->count);
    return;
  }
  const struct st_patch* p = patches->first;
  for (uint32_t left = patches->count; left;) {
    struct st_patch_data data[PATCHES_AT_ONCE];
    uint32_t n = left < PATCHES_AT_ONCE ? left : PATCHES_AT_ONCE;
    for (uint32_t i = 0; i < n; i++, p = p->next) {
      data[i].offset = p->offset;
      memcpy(data[i].data, p->size_field, ST_PATCH_SIZE);
    }
    left -= n;
    st_trace_buffer_patch(buffer, e->producer_id, patches->writer_id,
                          patches->chunk_id, data, n,
                          left || patches->has_more);
  }
  st_buffer_table_release(e->buffers, (uint16_t)patches->target_buffer);
}

static void sink_flush(void* self) {
  /* The sink of this process has nothing to flush: each chunk is moved as soon
   * as it is complete. */
  (void)self;
}

static void sink_register_writer(void* self, uint16_t writer_id,
                                 uint32_t target_buffer) {
  if (!st_is_reservation(target_buffer))
    st_producer_endpoint_register_writer(self, writer_id, target_buffer);
}

static void sink_unregister_writer(void* self, uint16_t writer_id) {
  st_producer_endpoint_unregister_writer(self, writer_id);
}

/* The arbiter's mutex is held, so no two threads store at the same time. */
static void sink_page_used(void* self, uint32_t page) {
  struct st_producer_endpoint* e = self;
  if (page >= atomic_load_explicit(&e->pages_used, memory_order_relaxed))
    atomic_store(&e->pages_used, page + 1);
}

static bool sink_congested(void* self, uint32_t target_buffer) {
  struct st_producer_endpoint* e = self;
  struct st_trace_buffer* buffer =
      st_is_reservation(target_buffer)
          ? NULL
          : st_buffer_table_acquire(e->buffers, (uint16_t)target_buffer);
  if (!buffer)
    return false;
  bool congested = st_trace_buffer_congested(buffer);
  st_buffer_table_release(e->buffers, (uint16_t)target_buffer);
  return congested;
}

const struct st_commit_sink st_in_process_sink = {
    .chunk_complete = sink_chunk_complete,
    .patch = sink_patch,
    .flush = sink_flush,
    .register_writer = sink_register_writer,
    .unregister_writer = sink_unregister_writer,
    .congested = sink_congested,
    .page_used = sink_page_used,
};
