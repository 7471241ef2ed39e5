#include "shm_abi.h"

/* The largest number of attempts to change the bitmap of a page.  An attempt, a
 * compare-and-swap, fails if another chunk of the page has changed meanwhile.
 * Correct peers cause a few failures; a hostile peer could cause endless ones.
 * No sleep is needed between attempts: the other thread has finished its
 * change, and a sleeping service would delay other producers. */
enum { CAS_ATTEMPTS = 64 };

static const uint8_t kLayoutChunks[8] = {0, 1, 2, 4, 7, 14, 0, 0};

static struct st_page_header* page_header(const struct st_shm* shm,
                                          uint32_t page) {
  return (struct st_page_header*)(shm->start + (size_t)page * shm->page_size);
}

bool st_shm_init(struct st_shm* shm, void* start, size_t size,
                 size_t page_size) {
  if (!start || (uintptr_t)start % ST_MIN_PAGE_SIZE != 0)
    return false;
  if (page_size < ST_MIN_PAGE_SIZE || page_size > ST_MAX_PAGE_SIZE)
    return false;
  if (page_size % ST_MIN_PAGE_SIZE != 0)
    return false;
  if (size == 0 || size % page_size != 0 || size / page_size > UINT32_MAX)
    return false;
  shm->start = start;
  shm->page_size = (uint32_t)page_size;
  shm->num_pages = (uint32_t)(size / page_size);
  return true;
}

uint32_t st_layout_chunks(uint32_t layout) {
  return layout < ST_PAGE_LAYOUTS ? kLayoutChunks[layout] : 0;
}

uint32_t st_chunk_size(uint32_t page_size, uint32_t layout) {
  uint32_t chunks = st_layout_chunks(layout);
  if (chunks == 0)
    return 0;
  return (page_size - ST_PAGE_HEADER_SIZE) / chunks & ~3u;
}

uint32_t st_page_bitmap(const struct st_shm* shm, uint32_t page) {
  return atomic_load_explicit(&page_header(shm, page)->bitmap,
                              memory_order_acquire);
}

bool st_chunk_at(const struct st_shm* shm, uint32_t page, uint32_t layout,
                 uint32_t index, struct st_chunk* out) {
  if (page >= shm->num_pages || index >= st_layout_chunks(layout))
    return false;
  out->size = st_chunk_size(shm->page_size, layout);
  out->begin = (uint8_t*)page_header(shm, page) + ST_PAGE_HEADER_SIZE +
               index * out->size;
  out->page = page;
  out->index = (uint8_t)index;
  return true;
}

bool st_page_try_partition(const struct st_shm* shm, uint32_t page,
                           enum st_page_layout layout) {
  if (page >= shm->num_pages || st_layout_chunks(layout) == 0)
    return false;
  uint32_t expected = 0;
  uint32_t desired = (uint32_t)layout << ST_BITMAP_LAYOUT_SHIFT;
  return atomic_compare_exchange_strong_explicit(
      &page_header(shm, page)->bitmap, &expected, desired, memory_order_acq_rel,
      memory_order_relaxed);
}

/* Returns the bitmap of a page after a chunk has changed to state `to`.  A page
 * becomes unpartitioned when its last chunk becomes free. */
static uint32_t bitmap_with(uint32_t bitmap, uint32_t index,
                            enum st_chunk_state to) {
  uint32_t next = (bitmap & ~(3u << (2 * index))) | (uint32_t)to << (2 * index);
  if (to == ST_CHUNK_FREE && (next & ST_BITMAP_CHUNKS_MASK) == 0)
    return 0;
  return next;
}

/* Changes the state of a chunk.  Fails at once if there is no such chunk, or if
 * its state is not `from`.  On success *layout is the layout of the page. */
static bool transition(const struct st_shm* shm, uint32_t page, uint32_t index,
                       enum st_chunk_state from, enum st_chunk_state to,
                       uint32_t* layout) {
  if (page >= shm->num_pages)
    return false;
  _Atomic uint32_t* word = &page_header(shm, page)->bitmap;
  uint32_t bitmap = atomic_load_explicit(word, memory_order_acquire);
  for (unsigned attempt = 0; attempt < CAS_ATTEMPTS; attempt++) {
    *layout = st_bitmap_layout(bitmap);
    if (index >= st_layout_chunks(*layout))
      return false;
    if (st_bitmap_state(bitmap, index) != from)
      return false;
    if (atomic_compare_exchange_weak_explicit(
            word, &bitmap, bitmap_with(bitmap, index, to), memory_order_acq_rel,
            memory_order_acquire))
      return true;
  }
  return false;
}

static bool acquire(const struct st_shm* shm, uint32_t page, uint32_t index,
                    enum st_chunk_state from, enum st_chunk_state to,
                    struct st_chunk* out) {
  uint32_t layout;
  return transition(shm, page, index, from, to, &layout) &&
         st_chunk_at(shm, page, layout, index, out);
}

bool st_chunk_try_acquire_for_writing(const struct st_shm* shm, uint32_t page,
                                      uint32_t index, uint16_t writer_id,
                                      uint32_t chunk_id, uint16_t packets,
                                      struct st_chunk* out) {
  if (!acquire(shm, page, index, ST_CHUNK_FREE, ST_CHUNK_BEING_WRITTEN, out))
    return false;
  struct st_chunk_header* header = st_chunk_header(out);
  atomic_store_explicit(&header->writer_id, writer_id, memory_order_relaxed);
  atomic_store_explicit(&header->chunk_id, chunk_id, memory_order_relaxed);
  atomic_store_explicit(&header->packets, packets, memory_order_release);
  return true;
}

bool st_chunk_try_acquire_for_reading(const struct st_shm* shm, uint32_t page,
                                      uint32_t index, struct st_chunk* out) {
  return acquire(shm, page, index, ST_CHUNK_COMPLETE, ST_CHUNK_BEING_READ, out);
}

/* Returns whether the page still contains `chunk`, with the layout that it had
 * when the chunk was acquired, and in state `state`.  If the peer has corrupted
 * the page, the same index could mean another chunk. */
static bool still_holds(const struct st_shm* shm, const struct st_chunk* chunk,
                        enum st_chunk_state state) {
  if (chunk->page >= shm->num_pages)
    return false;
  uint32_t bitmap = st_page_bitmap(shm, chunk->page);
  uint32_t layout = st_bitmap_layout(bitmap);
  return chunk->index < st_layout_chunks(layout) &&
         chunk->size == st_chunk_size(shm->page_size, layout) &&
         st_bitmap_state(bitmap, chunk->index) == state;
}

bool st_chunk_release_as_complete(const struct st_shm* shm,
                                  const struct st_chunk* chunk) {
  uint32_t layout;
  return still_holds(shm, chunk, ST_CHUNK_BEING_WRITTEN) &&
         transition(shm, chunk->page, chunk->index, ST_CHUNK_BEING_WRITTEN,
                    ST_CHUNK_COMPLETE, &layout);
}

/* The header is cleared before the state changes.  Otherwise a scraper could
 * see an old header in a chunk that was acquired again. */
static bool release_free(const struct st_shm* shm, const struct st_chunk* chunk,
                         enum st_chunk_state from) {
  if (!still_holds(shm, chunk, from))
    return false;
  struct st_chunk_header* header = st_chunk_header(chunk);
  atomic_store_explicit(&header->writer_id, 0, memory_order_relaxed);
  atomic_store_explicit(&header->chunk_id, 0, memory_order_relaxed);
  atomic_store_explicit(&header->packets, 0, memory_order_release);
  uint32_t layout;
  return transition(shm, chunk->page, chunk->index, from, ST_CHUNK_FREE,
                    &layout);
}

bool st_chunk_release_as_free(const struct st_shm* shm,
                              const struct st_chunk* chunk) {
  return release_free(shm, chunk, ST_CHUNK_BEING_READ);
}

bool st_chunk_release_complete_as_free(const struct st_shm* shm,
                                       const struct st_chunk* chunk) {
  return release_free(shm, chunk, ST_CHUNK_COMPLETE);
}
