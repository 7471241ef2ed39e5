/* Fuzzes a producer endpoint: bitmaps, chunk headers, payloads and
 * CommitDataRequests all come from the input. */
#define CHECK_ABORTS
#include "fake_chunk.h"
#include "producer_endpoint.h"

enum { PAGES = 4, PAGE = 4096, BUFFER = 1 };

static _Alignas(4096) uint8_t memory[PAGES * PAGE];

/* Fills the pages of the shared memory with repetitions of the input.  Most
 * bitmaps then have chunks that can be moved. */
static void fill_memory(const uint8_t* data, size_t size) {
  for (size_t i = 0; i < sizeof memory; i++)
    memory[i] = data[i % size];
  for (size_t page = 0; page < PAGES; page++) {
    uint32_t bitmap;
    memcpy(&bitmap, memory + page * PAGE, sizeof bitmap);
    if (data[page % size] & 1)
      bitmap |= 0x0FFFFFFF;
    memcpy(memory + page * PAGE, &bitmap, sizeof bitmap);
  }
}

static void run(struct st_producer_endpoint* e, const uint8_t* data,
                size_t size) {
  static const uint16_t buffers[] = {BUFFER};
  uint64_t flush_id;
  for (size_t i = 0; i + 2 <= size && i < 64; i += 2)
    st_producer_endpoint_register_writer(e, data[i], data[i + 1] % 3);
  for (uint32_t page = 0; page <= PAGES; page++)
    for (uint32_t i = 0; i <= ST_MAX_CHUNKS_PER_PAGE; i++)
      if (data[(page + i) % size] & 2)
        st_producer_endpoint_move_chunk(e, page, i, BUFFER);
  st_producer_endpoint_scrape(e, buffers, 1);
  st_producer_endpoint_commit(e, data, size, &flush_id);
  st_producer_endpoint_scrape(e, buffers, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size)
    return 0;
  static struct st_buffer_table* table;
  if (!table)
    table = st_buffer_table_create();
  struct st_trace_buffer* b = ring(8192);
  CHECK(st_buffer_table_add(table, BUFFER, b));
  struct st_producer_endpoint e;
  struct st_shm shm;
  CHECK(st_producer_endpoint_init(&e, 1, table));
  CHECK(st_shm_init(&shm, memory, sizeof memory, PAGE));
  if (data[0] & 1)
    st_producer_endpoint_set_shm(&e, &shm);
  st_producer_endpoint_allow_buffer(&e, BUFFER, true);
  fill_memory(data, size);
  run(&e, data, size);
  begin_read(b);
  while (st_trace_buffer_read_packet(b, &got))
    CHECK(got.size);
  st_producer_endpoint_destroy(&e);
  st_buffer_table_remove(table, BUFFER);
  return 0;
}
