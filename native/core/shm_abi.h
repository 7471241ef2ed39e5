/* The shared memory ABI: pages, chunks, and the state machine that lets a
 * producer and the service work on the same memory without a lock.
 *
 * The buffer is an array of equal pages.  A page is unpartitioned (all zero) or
 * divided into 1, 2, 4, 7 or 14 chunks of equal size.  One chunk belongs to one
 * trace writer from the moment it is acquired until it is complete.
 *
 *   page:    0        4        8                            page_size
 *            +--------+--------+---------+---------+--- - - ---+
 *            | bitmap | 0      | chunk 0 | chunk 1 |           |
 *            +--------+--------+---------+---------+--- - - ---+
 *
 *   bitmap:  31   30..28    27..26        3..2      1..0
 *            0    layout    chunk 13 ...  chunk 1   chunk 0      (2 bits each)
 *
 *   chunk:   0          4           6           8
 *            +----------+-----------+-----------+----------- - - -+
 *            | chunk id | writer id | packets   | payload         |
 *            +----------+-----------+-----------+----------- - - -+
 *            u32        u16         u16: bits 9..0 packets started,
 *                                   bits 15..10 flags
 *
 * States of a chunk (each arrow is one compare-and-swap of the whole bitmap):
 *
 *   Free --producer--> BeingWritten --producer--> Complete
 *     ^                                              |
 *     +--service--- BeingRead <------service---------+
 *
 * The release that leaves every chunk of a page Free stores 0: the page is
 * unpartitioned again and may get another layout.  Under emulation (no shared
 * memory with the service) the producer frees a Complete chunk by itself.
 *
 * Trust: for the service, the producer may change any byte at any time.  So the
 * functions read the bitmap once per decision, check indices against that
 * value, and never use pointers or sizes from shared memory.  A chunk's content
 * must be copied before it is parsed.
 *
 * Source: docs/formats/shared_memory.md, "Buffer geometry", "Page header",
 * "Chunk header".
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_MIN_PAGE_SIZE = 4096,
  ST_MAX_PAGE_SIZE = 65536,
  ST_MAX_CHUNKS_PER_PAGE = 14,
  ST_PAGE_HEADER_SIZE = 8,
  ST_CHUNK_HEADER_SIZE = 8,

  ST_MAX_WRITER_ID = 32767,
  ST_MAX_PACKETS_PER_CHUNK = 1023,
};

enum st_page_layout {
  ST_PAGE_NOT_PARTITIONED = 0,
  ST_PAGE_DIV1 = 1,
  ST_PAGE_DIV2 = 2,
  ST_PAGE_DIV4 = 3,
  ST_PAGE_DIV7 = 4,
  ST_PAGE_DIV14 = 5,
  /* The number of layouts.  Layouts 6 and 7 are reserved; a page with a
   * reserved layout holds no chunk. */
  ST_PAGE_LAYOUTS = 6,
};

enum st_chunk_state {
  ST_CHUNK_FREE = 0,
  ST_CHUNK_BEING_WRITTEN = 1,
  ST_CHUNK_BEING_READ = 2,
  ST_CHUNK_COMPLETE = 3,
};

/* Flags of a chunk header, as values of its 6-bit field. */
enum st_chunk_flags {
  /* The chunk's first fragment continues a packet of the previous chunk. */
  ST_CHUNK_FIRST_CONTINUES = 1,
  /* The chunk's last fragment continues in the next chunk. */
  ST_CHUNK_LAST_CONTINUES = 2,
  ST_CHUNK_NEEDS_PATCHING = 4,
};

#define ST_PACKETS_COUNT_MASK 0x03FFu
#define ST_PACKETS_FLAGS_SHIFT 10
#define ST_BITMAP_CHUNKS_MASK 0x0FFFFFFFu
#define ST_BITMAP_LAYOUT_MASK 0x70000000u
#define ST_BITMAP_LAYOUT_SHIFT 28

/* The bitmap of a page, which producer and service share.  A change of a
 * chunk's state acquires what the chunk's last owner wrote, and releases what
 * the changing thread wrote.  So the bitmap is exchanged with acquire and
 * release order, and loaded with acquire order. */
struct st_page_header {
  _Atomic uint32_t bitmap;
  uint32_t reserved;
};

/* A chunk header.  `packets` is stored with release order whenever a fragment
 * is complete.  A scraper of an unfinished chunk loads `packets` first, with
 * acquire order, and so sees that number of complete fragments.  The other two
 * members have their final values before the first such store, so relaxed order
 * suffices for them. */
struct st_chunk_header {
  _Atomic uint32_t chunk_id;
  _Atomic uint16_t writer_id;
  _Atomic uint16_t packets;
};

static_assert(sizeof(struct st_page_header) == ST_PAGE_HEADER_SIZE, "ABI");
static_assert(offsetof(struct st_page_header, bitmap) == 0, "ABI");
static_assert(sizeof(struct st_chunk_header) == ST_CHUNK_HEADER_SIZE, "ABI");
static_assert(offsetof(struct st_chunk_header, chunk_id) == 0, "ABI");
static_assert(offsetof(struct st_chunk_header, writer_id) == 4, "ABI");
static_assert(offsetof(struct st_chunk_header, packets) == 6, "ABI");

/* One mapping of a shared memory buffer.  The struct does not own the
 * memory. */
struct st_shm {
  uint8_t* start;
  uint32_t page_size;
  uint32_t num_pages;
};

/* A chunk's position in the shared memory.  `begin` and `size` include the
 * chunk header.  They are computed from indices, never read from shared
 * memory. */
struct st_chunk {
  uint8_t* begin;
  uint32_t size; /* The chunk's size with its header; 0 if there is no chunk. */
  uint32_t page;
  uint8_t index;
};

static inline struct st_chunk_header* st_chunk_header(
    const struct st_chunk* chunk) {
  return (struct st_chunk_header*)chunk->begin;
}

/* Fills *shm.  `start` must be 4096-aligned, `size` a multiple of page_size,
 * and `page_size` a multiple of 4096 up to 65536.  Returns false if not. */
bool st_shm_init(struct st_shm* shm, void* start, size_t size,
                 size_t page_size);

/* Returns how many chunks a page of this layout has; 0 for unpartitioned and
 * reserved layouts. */
uint32_t st_layout_chunks(uint32_t layout);

/* Returns the size of a chunk in a layout of n chunks: floor((page_size - 8) /
 * n), rounded down to a multiple of 4.  Returns 0 if n is 0. */
uint32_t st_chunk_size(uint32_t page_size, uint32_t layout);

/* Returns the bitmap of a page, loaded with acquire order. */
uint32_t st_page_bitmap(const struct st_shm* shm, uint32_t page);

static inline uint32_t st_bitmap_layout(uint32_t bitmap) {
  return (bitmap & ST_BITMAP_LAYOUT_MASK) >> ST_BITMAP_LAYOUT_SHIFT;
}

static inline enum st_chunk_state st_bitmap_state(uint32_t bitmap,
                                                  uint32_t index) {
  return (enum st_chunk_state)((bitmap >> (2 * index)) & 3);
}

/* Computes the position of chunk `index` in a page of `layout`. Returns false
 * if the index is out of range. */
bool st_chunk_at(const struct st_shm* shm, uint32_t page, uint32_t layout,
                 uint32_t index, struct st_chunk* out);

/* Divides an unpartitioned page into chunks.  Returns false if another thread
 * has done so before. */
bool st_page_try_partition(const struct st_shm* shm, uint32_t page,
                           enum st_page_layout layout);

/* Changes a chunk from Free to BeingWritten, then fills the chunk's header.
 * `packets` is the u16 of that name in the header; it is stored last, with
 * release order. */
bool st_chunk_try_acquire_for_writing(const struct st_shm* shm, uint32_t page,
                                      uint32_t index, uint16_t writer_id,
                                      uint32_t chunk_id, uint16_t packets,
                                      struct st_chunk* out);

/* Changes a chunk from BeingWritten to Complete.  Returns false if the peer has
 * corrupted the page. */
bool st_chunk_release_as_complete(const struct st_shm* shm,
                                  const struct st_chunk* chunk);

/* Changes a chunk from Complete to BeingRead. */
bool st_chunk_try_acquire_for_reading(const struct st_shm* shm, uint32_t page,
                                      uint32_t index, struct st_chunk* out);

/* Zeroes a chunk's header, then changes the chunk from BeingRead to Free. */
bool st_chunk_release_as_free(const struct st_shm* shm,
                              const struct st_chunk* chunk);

/* Zeroes a chunk's header, then changes the chunk from Complete to Free.  The
 * producer calls it under emulation. */
bool st_chunk_release_complete_as_free(const struct st_shm* shm,
                                       const struct st_chunk* chunk);
