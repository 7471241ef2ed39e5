/* Tests of the shared memory ABI: pages, chunks and their states, for all page
 * sizes and layouts. */
#include "core/shm_abi.h"

#include <string.h>

#include "check.h"

enum { PAGES = 4, MAX_SIZE = PAGES * ST_MAX_PAGE_SIZE };
static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[MAX_SIZE];

static struct st_shm make_shm(uint32_t page_size) {
  struct st_shm shm;
  memset(memory, 0, sizeof memory);
  CHECK(st_shm_init(&shm, memory, (size_t)PAGES * page_size, page_size));
  CHECK_EQ(shm.num_pages, PAGES);
  return shm;
}

static void test_init_refuses_invalid_geometry(void) {
  struct st_shm shm;
  CHECK(!st_shm_init(&shm, NULL, 4096, 4096));
  CHECK(!st_shm_init(&shm, memory + 8, 4096, 4096));
  CHECK(!st_shm_init(&shm, memory, 0, 4096));
  CHECK(!st_shm_init(&shm, memory, 4096, 0));
  CHECK(!st_shm_init(&shm, memory, 8192, 2048));
  CHECK(!st_shm_init(&shm, memory, 8192, 4100));
  CHECK(!st_shm_init(&shm, memory, 12288, 8192));
  CHECK(!st_shm_init(&shm, memory, 131072, 131072));
  CHECK(st_shm_init(&shm, memory, 12288, 12288));
  CHECK(st_shm_init(&shm, memory, 65536, 65536));
}

static void test_chunk_sizes_match_the_formula(void) {
  static const uint32_t kSizes4096[] = {0, 4088, 2044, 1020, 584, 292, 0, 0};
  for (uint32_t layout = 0; layout < 8; layout++)
    CHECK_EQ(st_chunk_size(4096, layout), kSizes4096[layout]);
  CHECK_EQ(st_chunk_size(65536, ST_PAGE_DIV1), 65528);
  CHECK_EQ(st_chunk_size(32768, ST_PAGE_DIV14), 2340);
  CHECK_EQ(st_layout_chunks(ST_PAGE_DIV7), 7);
  CHECK_EQ(st_layout_chunks(6), 0);
  CHECK_EQ(st_layout_chunks(0xFFFFFFFF), 0);
}

/* Takes one chunk through all of its states. */
static void walk_chunk(const struct st_shm* shm, uint32_t page, uint32_t layout,
                       uint32_t index, bool emulated) {
  struct st_chunk c, other;
  uint16_t writer = (uint16_t)(index + 1);
  CHECK(!st_chunk_try_acquire_for_reading(shm, page, index, &c));
  CHECK(st_chunk_try_acquire_for_writing(shm, page, index, writer, 77 + index,
                                         0x0401, &c));
  CHECK_EQ(st_bitmap_state(st_page_bitmap(shm, page), index),
           ST_CHUNK_BEING_WRITTEN);
  CHECK_EQ(c.size, st_chunk_size(shm->page_size, layout));
  CHECK(c.begin == memory + (size_t)page * shm->page_size + 8 + index * c.size);
  CHECK(c.begin + c.size <= memory + (size_t)(page + 1) * shm->page_size);
  uint32_t id;
  uint16_t header[2];
  memcpy(&id, c.begin, 4);
  memcpy(header, c.begin + 4, 4);
  CHECK_EQ(id, 77 + index);
  CHECK_EQ(header[0], writer);
  CHECK_EQ(header[1], 0x0401);

  CHECK(!st_chunk_try_acquire_for_writing(shm, page, index, 9, 9, 0, &other));
  CHECK(!st_chunk_try_acquire_for_reading(shm, page, index, &other));
  CHECK(!st_chunk_release_as_free(shm, &c));
  CHECK(!st_chunk_release_complete_as_free(shm, &c));
  CHECK(st_chunk_release_as_complete(shm, &c));
  CHECK(!st_chunk_release_as_complete(shm, &c));
  if (emulated) {
    CHECK(st_chunk_release_complete_as_free(shm, &c));
  } else {
    CHECK(st_chunk_try_acquire_for_reading(shm, page, index, &other));
    CHECK(other.begin == c.begin && other.size == c.size);
    CHECK(!st_chunk_release_complete_as_free(shm, &c));
    CHECK(st_chunk_release_as_free(shm, &other));
  }
  static const uint8_t kZero[8];
  CHECK(memcmp(c.begin, kZero, 8) == 0);
}

static void walk_all(bool emulated) {
  for (uint32_t size = 4096; size <= ST_MAX_PAGE_SIZE; size *= 2) {
    struct st_shm shm = make_shm(size);
    for (uint32_t layout = 1; layout < ST_PAGE_LAYOUTS; layout++) {
      for (uint32_t page = 0; page < PAGES; page++) {
        uint32_t chunks = st_layout_chunks(layout);
        CHECK(st_page_try_partition(&shm, page, layout));
        CHECK(!st_page_try_partition(&shm, page, layout));
        CHECK_EQ(st_page_bitmap(&shm, page), layout << 28);
        /* Another chunk of the page is in use meanwhile, so the page stays
         * divided. */
        struct st_chunk held;
        CHECK(st_chunk_try_acquire_for_writing(&shm, page, 0, 1, 1, 0, &held));
        for (uint32_t i = 1; i < chunks; i++)
          walk_chunk(&shm, page, layout, i, emulated);
        CHECK_EQ(st_page_bitmap(&shm, page), layout << 28 | 1);
        CHECK(!st_chunk_try_acquire_for_writing(&shm, page, chunks, 1, 1, 0,
                                                &held));
        CHECK(st_chunk_release_as_complete(&shm, &held));
        CHECK(st_chunk_release_complete_as_free(&shm, &held));
        /* The page has become unpartitioned again. */
        CHECK_EQ(st_page_bitmap(&shm, page), 0);
      }
    }
  }
}

static void test_chunks_pass_through_all_states(void) {
  walk_all(false);
}

static void test_emulated_chunk_is_freed_by_the_producer(void) {
  walk_all(true);
}

static void test_indices_out_of_range_are_refused(void) {
  struct st_shm shm = make_shm(4096);
  struct st_chunk c;
  CHECK(!st_page_try_partition(&shm, PAGES, ST_PAGE_DIV1));
  CHECK(!st_page_try_partition(&shm, 0, ST_PAGE_NOT_PARTITIONED));
  CHECK(!st_page_try_partition(&shm, 0, 6));
  CHECK(!st_chunk_try_acquire_for_writing(&shm, 0, 0, 1, 0, 0, &c));
  CHECK(!st_chunk_try_acquire_for_writing(&shm, PAGES, 0, 1, 0, 0, &c));
  CHECK(!st_chunk_try_acquire_for_reading(&shm, UINT32_MAX, 0, &c));
  CHECK(!st_chunk_at(&shm, 0, ST_PAGE_DIV2, 2, &c));
  CHECK(!st_chunk_at(&shm, PAGES, ST_PAGE_DIV2, 0, &c));
  CHECK(!st_chunk_at(&shm, 0, 7, 0, &c));
}

/* Another process changes the layout of a page while a writer holds a chunk of
 * this page. */
static void test_chunk_on_a_corrupted_page_is_refused(void) {
  struct st_shm shm = make_shm(4096);
  struct st_chunk c;
  CHECK(st_page_try_partition(&shm, 1, ST_PAGE_DIV4));
  CHECK(st_chunk_try_acquire_for_writing(&shm, 1, 3, 1, 0, 0, &c));
  struct st_page_header* page = (struct st_page_header*)(memory + 4096);
  static const uint32_t kWords[] = {0,          0xFFFFFFFF, 0x60000000,
                                    0x70000000, 0x40000040, 0x10000001};
  for (size_t i = 0; i < sizeof kWords / sizeof kWords[0]; i++) {
    atomic_store(&page->bitmap, kWords[i]);
    CHECK(!st_chunk_release_as_complete(&shm, &c));
    CHECK_EQ(st_page_bitmap(&shm, 1), kWords[i]);
  }
}

int main(void) {
  RUN(test_init_refuses_invalid_geometry);
  RUN(test_chunk_sizes_match_the_formula);
  RUN(test_chunks_pass_through_all_states);
  RUN(test_emulated_chunk_is_freed_by_the_producer);
  RUN(test_indices_out_of_range_are_refused);
  RUN(test_chunk_on_a_corrupted_page_is_refused);
  return 0;
}
