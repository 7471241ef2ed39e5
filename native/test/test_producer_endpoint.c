/* Tests of producer endpoints: requests, scraping, and the in-process sink. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "decoder.h"
#include "fake_chunk.h"
#include "producer_endpoint.h"
#include "trace_writer.h"

enum { PAGE = 4096, PAGES = 8, BUFFER = 7, OTHER = 8 };

struct fixture {
  struct st_buffer_table* table;
  struct st_producer_endpoint endpoint;
  struct st_shm shm;
  uint8_t* memory;
  struct st_trace_buffer *buffer, *other;
  uint8_t request[4096];
  size_t request_size;
  uint64_t flush_id;
};
static struct fixture f;

static void set_up(void) {
  memset(&f, 0, sizeof f);
  f.memory = aligned_alloc(4096, PAGE * PAGES);
  memset(f.memory, 0, PAGE * PAGES);
  CHECK(st_shm_init(&f.shm, f.memory, PAGE * PAGES, PAGE));
  f.table = st_buffer_table_create();
  f.buffer = ring(65536);
  f.other = ring(65536);
  CHECK(st_buffer_table_add(f.table, BUFFER, f.buffer));
  CHECK(st_buffer_table_add(f.table, OTHER, f.other));
  CHECK(st_producer_endpoint_init(&f.endpoint, 1, f.table));
  st_producer_endpoint_set_shm(&f.endpoint, &f.shm);
  st_producer_endpoint_allow_buffer(&f.endpoint, BUFFER, true);
}

static void tear_down(void) {
  st_producer_endpoint_destroy(&f.endpoint);
  st_buffer_table_destroy(f.table);
  free(f.memory);
}

/* Writes packets of 20 bytes into a chunk.  The chunk's header counts
 * `unfinished` more packets, which are not written. */
static struct st_chunk write_chunk(uint32_t page, uint16_t writer, uint32_t id,
                                   const char* fills, uint16_t unfinished) {
  struct st_chunk c;
  st_page_try_partition(&f.shm, page, ST_PAGE_DIV2);
  bool acquired = false;
  for (uint32_t i = 0; i < 2 && !acquired; i++)
    acquired =
        st_chunk_try_acquire_for_writing(&f.shm, page, i, writer, id, 0, &c);
  CHECK(acquired);
  uint8_t* p = c.begin + ST_CHUNK_HEADER_SIZE;
  for (const char* fill = fills; *fill; fill++, p += 21) {
    *p = 20;
    memset(p + 1, *fill, 20);
  }
  atomic_store(&st_chunk_header(&c)->packets,
               (uint16_t)(strlen(fills) + unfinished));
  return c;
}

static void complete(const struct st_chunk* c) {
  CHECK(st_chunk_release_as_complete(&f.shm, c));
}

static enum st_chunk_state state_of(const struct st_chunk* c) {
  return st_bitmap_state(st_page_bitmap(&f.shm, c->page), c->index);
}

static void new_request(void) {
  f.request_size = 0;
}

static void put_bytes(uint32_t field, const void* data, size_t size) {
  uint8_t* p = f.request + f.request_size;
  f.request_size =
      (size_t)(st_put_bytes_field(p, field, data, size) - f.request);
}

static void put_move(uint32_t page, uint32_t index, uint32_t target) {
  uint8_t m[32], *p = m;
  p = st_put_u64_field(p, 1, page);
  p = st_put_u64_field(p, 2, index);
  p = st_put_u64_field(p, 3, target);
  put_bytes(1, m, (size_t)(p - m));
}

static void put_patch(uint32_t target, uint32_t writer, uint32_t id,
                      uint32_t offset, size_t size) {
  uint8_t patch[32], m[64], *p = patch;
  p = st_put_u64_field(p, 1, offset);
  p = st_put_bytes_field(p, 2, "XYZW5", size);
  size_t n = (size_t)(p - patch);
  p = m;
  p = st_put_u64_field(p, 1, target);
  p = st_put_u64_field(p, 2, writer);
  p = st_put_u64_field(p, 3, id);
  p = st_put_bytes_field(p, 4, patch, n);
  put_bytes(2, m, (size_t)(p - m));
}

static bool send_request(void) {
  return st_producer_endpoint_commit(&f.endpoint, f.request, f.request_size,
                                     &f.flush_id);
}

static void complete_chunks_are_moved(void) {
  set_up();
  struct st_chunk a = write_chunk(0, 5, 0, "ab", 0);
  struct st_chunk b = write_chunk(0, 6, 0, "c", 0);
  complete(&a);
  complete(&b);
  new_request();
  put_move(0, a.index, BUFFER);
  put_move(0, b.index, BUFFER);
  f.request_size =
      (size_t)(st_put_u64_field(f.request + f.request_size, 3, 77) - f.request);
  CHECK(send_request());
  CHECK_EQ(f.flush_id, 77);
  CHECK_EQ(st_page_bitmap(&f.shm, 0), 0);
  begin_read(f.buffer);
  expect(f.buffer, 20, 'a');
  CHECK_EQ(got.writer_id, 5);
  expect(f.buffer, 20, 'b');
  expect(f.buffer, 20, 'c');
  CHECK_EQ(got.writer_id, 6);
  expect_nothing(f.buffer);
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 0);
  tear_down();
}

static void refused_chunk_is_freed(void) {
  set_up();
  const uint32_t targets[] = {OTHER, 0, 9, UINT32_MAX};
  for (size_t i = 0; i < 4; i++) {
    struct st_chunk c = write_chunk(0, 5, (uint32_t)i, "a", 0);
    complete(&c);
    new_request();
    put_move(0, c.index, targets[i]);
    CHECK(send_request());
    CHECK_EQ(st_page_bitmap(&f.shm, 0), 0);
    CHECK_EQ(f.endpoint.stats.chunks_discarded, i + 1);
  }
  begin_read(f.other);
  expect_nothing(f.other);
  tear_down();
}

static void chunks_for_a_buffer_other_than_the_registered_one_are_discarded(
    void) {
  set_up();
  st_producer_endpoint_allow_buffer(&f.endpoint, OTHER, true);
  st_producer_endpoint_register_writer(&f.endpoint, 5, BUFFER);
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t targets[] = {OTHER, BUFFER, OTHER};
    if (i == 2)
      st_producer_endpoint_unregister_writer(&f.endpoint, 5);
    struct st_chunk c = write_chunk(0, 5, i, i == 0 ? "a" : "b", 0);
    complete(&c);
    new_request();
    put_move(0, c.index, targets[i]);
    CHECK(send_request());
    CHECK_EQ(st_page_bitmap(&f.shm, 0), 0);
    CHECK_EQ(f.endpoint.stats.chunks_discarded, 1);
  }
  begin_read(f.buffer);
  expect(f.buffer, 20, 'b');
  expect_nothing(f.buffer);
  begin_read(f.other);
  expect(f.other, 20, 'b');
  expect_nothing(f.other);
  tear_down();
}

static void moves_of_chunks_that_are_not_complete_are_skipped(void) {
  set_up();
  struct st_chunk c = write_chunk(1, 5, 0, "a", 0);
  new_request();
  put_move(1, c.index, BUFFER); /* A move of a chunk that is being written. */
  put_move(1, 1, BUFFER);       /* A move of a free chunk. */
  put_move(1, 2, BUFFER);  /* A chunk index that this layout does not have. */
  put_move(1, 14, BUFFER); /* A chunk index that no layout has. */
  put_move(2, 0, BUFFER);  /* A move from an unpartitioned page. */
  put_move(PAGES, 0, BUFFER); /* A page that does not exist. */
  put_move(UINT32_MAX, 0, BUFFER);
  CHECK(send_request());
  /* An invalid move is not counted as a loss. */
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 0);
  CHECK_EQ(state_of(&c), ST_CHUNK_BEING_WRITTEN);
  begin_read(f.buffer);
  expect_nothing(f.buffer);
  tear_down();
}

static void ids_are_truncated_to_16_bits(void) {
  set_up();
  st_producer_endpoint_register_writer(&f.endpoint, 65536 + 5, 65536 + OTHER);
  struct st_chunk a = write_chunk(0, 5, 0, "a", 0);
  complete(&a);
  st_producer_endpoint_move_chunk(&f.endpoint, 0, 0, BUFFER);
  /* The writer is registered for the buffer OTHER. */
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 1);
  st_producer_endpoint_unregister_writer(&f.endpoint, 5);
  struct st_chunk b = write_chunk(0, 5, 1, "b", 0);
  complete(&b);
  st_producer_endpoint_move_chunk(&f.endpoint, 0, 0, 65536 + BUFFER);
  begin_read(f.buffer);
  expect(f.buffer, 20, 'b');
  tear_down();
}

static void chunks_of_any_writer_id_are_moved(void) {
  set_up();
  struct st_chunk a = write_chunk(0, 0, 0, "a", 0);
  struct st_chunk b = write_chunk(0, ST_MAX_WRITER_ID + 1, 0, "b", 0);
  complete(&a);
  complete(&b);
  st_producer_endpoint_move_chunk(&f.endpoint, 0, 0, BUFFER);
  st_producer_endpoint_move_chunk(&f.endpoint, 0, 1, BUFFER);
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 0);
  begin_read(f.buffer);
  expect(f.buffer, 20, 'a');
  expect(f.buffer, 20, 'b');
  tear_down();
}

static void registered_writer_may_write_to_no_other_buffer(void) {
  set_up();
  st_producer_endpoint_allow_buffer(&f.endpoint, OTHER, true);
  st_producer_endpoint_register_writer(&f.endpoint, 5, OTHER);
  struct st_chunk a = write_chunk(0, 5, 0, "a", 0);
  complete(&a);
  st_producer_endpoint_move_chunk(&f.endpoint, 0, 0, BUFFER);
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 1);
  CHECK_EQ(st_page_bitmap(&f.shm, 0), 0);
  begin_read(f.buffer);
  expect_nothing(f.buffer);
  tear_down();
}

static void patches_are_applied_after_all_moves(void) {
  set_up();
  struct st_chunk c = write_chunk(0, 5, 0, "a", 0);
  atomic_fetch_or(&st_chunk_header(&c)->packets,
                  NEEDS_PATCHING << ST_PACKETS_FLAGS_SHIFT);
  complete(&c);
  new_request();
  put_patch(BUFFER, 5, 0, 1, 4);
  put_move(0, c.index, BUFFER);
  CHECK(send_request());
  begin_read(f.buffer);
  CHECK(st_trace_buffer_read_packet(f.buffer, &got));
  CHECK(!memcmp(got.data, "XYZWaaaa", 8));
  CHECK_EQ(stats_of(f.buffer).patches_succeeded, 1);
  tear_down();
}

static void invalid_patches_are_discarded_and_counted(void) {
  set_up();
  CHECK(commit_one(f.buffer, 5, 0, 50, 'a'));
  new_request();
  put_patch(BUFFER, 5, 0, 1, 3); /* A patch must have four bytes. */
  put_patch(BUFFER, 5, 0, 1, 5);
  put_patch(9, 5, 0, 1, 4);      /* A buffer that does not exist. */
  put_patch(BUFFER, 0, 0, 1, 4); /* A writer id that is invalid. */
  put_patch(BUFFER, 32768, 0, 1, 4);
  CHECK(send_request());
  CHECK_EQ(f.endpoint.stats.patches_discarded, 5);
  new_request();
  put_patch(BUFFER, 5, 1, 1, 4);  /* A chunk id that is unknown. */
  put_patch(BUFFER, 5, 0, 48, 4); /* A patch that exceeds the chunk. */
  put_patch(BUFFER, 5, 0, UINT32_MAX, 4);
  /* The target buffer is not allowed for the producer, and contains no chunk of
   * this producer. */
  put_patch(OTHER, 5, 0, 1, 4);
  CHECK(send_request());
  CHECK_EQ(f.endpoint.stats.patches_discarded, 5);
  CHECK_EQ(stats_of(f.buffer).patches_failed, 3);
  CHECK_EQ(stats_of(f.other).patches_failed, 1);
  begin_read(f.buffer);
  expect(f.buffer, 50, 'a');
  tear_down();
}

static void entry_with_too_many_patches_is_discarded(void) {
  set_up();
  CHECK(commit_one(f.buffer, 5, 0, 50, 'a'));
  static uint8_t m[16384], all[20000];
  uint8_t patch[16], *p = m;
  uint8_t* end =
      st_put_bytes_field(st_put_u64_field(patch, 1, 1), 2, "XYZW", 4);
  p = st_put_u64_field(p, 1, BUFFER);
  p = st_put_u64_field(p, 2, 5);
  for (int i = 0; i < 1025; i++)
    p = st_put_bytes_field(p, 4, patch, (size_t)(end - patch));
  size_t size = (size_t)(st_put_bytes_field(all, 2, m, (size_t)(p - m)) - all);
  CHECK(st_producer_endpoint_commit(&f.endpoint, all, size, &f.flush_id));
  CHECK_EQ(f.endpoint.stats.patches_discarded, 1025);
  CHECK_EQ(stats_of(f.buffer).patches_succeeded, 0);
  tear_down();
}

static void malformed_requests_are_counted(void) {
  set_up();
  struct st_chunk c = write_chunk(0, 5, 0, "a", 0);
  complete(&c);
  new_request();
  put_move(0, c.index, BUFFER);
  size_t good = f.request_size;
  const uint8_t bad[][4] = {{0x80}, {0x0A, 5}, {0x0B}, {0x08, 1}};
  const size_t sizes[] = {1, 2, 1, 2};
  for (size_t i = 0; i < 4; i++) {
    memcpy(f.request + good, bad[i], sizes[i]);
    f.request_size = good + sizes[i];
    CHECK(!send_request());
    CHECK_EQ(f.endpoint.stats.malformed_requests, i + 1);
    CHECK_EQ(f.flush_id, 0);
  }
  begin_read(f.buffer);
  /* The valid entries of the request were handled. */
  expect(f.buffer, 20, 'a');
  tear_down();
}

static void chunks_in_flight_are_scraped(void) {
  set_up();
  const uint16_t ids[] = {BUFFER};
  st_producer_endpoint_register_writer(&f.endpoint, 5, BUFFER);
  st_producer_endpoint_register_writer(&f.endpoint, 6, BUFFER);
  st_producer_endpoint_register_writer(&f.endpoint, 7, OTHER);
  /* A chunk with one unfinished fragment. */
  struct st_chunk a = write_chunk(0, 5, 0, "ab", 1);
  /* A chunk that is ignored, because its only fragment is unfinished. */
  struct st_chunk b = write_chunk(0, 6, 0, "c", 0);
  /* A chunk whose writer has another target buffer. */
  struct st_chunk c = write_chunk(1, 7, 0, "d", 1);
  /* A chunk of an unregistered writer. */
  struct st_chunk d = write_chunk(1, 8, 0, "e", 1);
  struct st_chunk e = write_chunk(2, 6, 1, "fg", 0);
  complete(&e);
  st_producer_endpoint_scrape(&f.endpoint, ids, 1);
  CHECK_EQ(state_of(&a), ST_CHUNK_BEING_WRITTEN);
  CHECK_EQ(state_of(&b), ST_CHUNK_BEING_WRITTEN);
  CHECK_EQ(state_of(&c), ST_CHUNK_BEING_WRITTEN);
  CHECK_EQ(state_of(&d), ST_CHUNK_BEING_WRITTEN);
  CHECK_EQ(state_of(&e), ST_CHUNK_COMPLETE);
  begin_read(f.buffer);
  expect(f.buffer, 20, 'a');
  expect(f.buffer, 20, 'b');
  expect(f.buffer, 20, 'f');
  expect(f.buffer, 20, 'g');
  expect_nothing(f.buffer);

  st_producer_endpoint_unregister_writer(&f.endpoint, 5);
  complete(&a);
  st_producer_endpoint_move_chunk(&f.endpoint, 0, a.index, BUFFER);
  st_producer_endpoint_move_chunk(&f.endpoint, 2, e.index, BUFFER);
  begin_read(f.buffer);
  expect_nothing(f.buffer); /* The unfinished packet of the chunk is empty. */
  tear_down();
}

static void unregistered_writers_of_a_dead_producer_are_scraped(void) {
  set_up();
  const uint16_t ids[] = {BUFFER, OTHER};
  st_producer_endpoint_register_writer(&f.endpoint, 7, OTHER);
  struct st_chunk a = write_chunk(0, 5, 0, "a", 0);
  struct st_chunk b = write_chunk(1, 7, 0, "b", 0);
  complete(&a);
  complete(&b);
  /* A buffer that is not allowed. */
  st_producer_endpoint_adopt_writers(&f.endpoint, 99);
  st_producer_endpoint_scrape(&f.endpoint, ids, 1);
  begin_read(f.buffer);
  expect_nothing(f.buffer);
  st_producer_endpoint_adopt_writers(&f.endpoint, BUFFER);
  st_producer_endpoint_scrape(&f.endpoint, ids, 1);
  begin_read(f.buffer);
  expect(f.buffer, 20, 'a');
  expect_nothing(f.buffer);
  tear_down();
}

static void only_allowed_buffers_are_scraped(void) {
  set_up();
  const uint16_t ids[] = {BUFFER, OTHER};
  st_producer_endpoint_register_writer(&f.endpoint, 5, OTHER);
  write_chunk(0, 5, 0, "ab", 1);
  st_producer_endpoint_scrape(&f.endpoint, ids, 2);
  begin_read(f.other);
  expect_nothing(f.other);
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 1);
  st_producer_endpoint_allow_buffer(&f.endpoint, OTHER, true);
  st_producer_endpoint_scrape(&f.endpoint, ids, 2);
  begin_read(f.other);
  expect(f.other, 20, 'a');
  tear_down();
}

static void repeated_registrations_count_once(void) {
  set_up();
  st_producer_endpoint_unregister_writer(&f.endpoint, 5);
  st_producer_endpoint_register_writer(&f.endpoint, 5, OTHER);
  st_producer_endpoint_register_writer(&f.endpoint, 5, BUFFER);
  CHECK_EQ(f.endpoint.registered_writers, 1);
  st_producer_endpoint_unregister_writer(&f.endpoint, 5);
  st_producer_endpoint_unregister_writer(&f.endpoint, 5);
  CHECK_EQ(f.endpoint.registered_writers, 0);
  tear_down();
}

static void scrape_stays_inside_chunks_with_wrong_sizes(void) {
  set_up();
  const uint16_t ids[] = {BUFFER};
  st_producer_endpoint_register_writer(&f.endpoint, 5, BUFFER);
  struct st_chunk c = write_chunk(0, 5, 0, "ab", 1000);
  memset(c.begin + ST_CHUNK_HEADER_SIZE + 42, 0xFF,
         c.size - ST_CHUNK_HEADER_SIZE - 42);
  st_producer_endpoint_scrape(&f.endpoint, ids, 1);
  begin_read(f.buffer);
  expect(f.buffer, 20, 'a');
  expect(f.buffer, 20, 'b');
  expect_nothing(f.buffer);
  tear_down();
}

static void chunks_inside_requests_are_copied(void) {
  set_up();
  struct st_shm none = {0};
  st_producer_endpoint_set_shm(&f.endpoint, &none);
  struct st_chunk c = write_chunk(0, 5, 0, "abc", 0);
  uint8_t m[2200], *p = m;
  p = st_put_u64_field(p, 3, BUFFER);
  p = st_put_bytes_field(p, 4, c.begin, c.size);
  uint8_t* complete_end = p;
  p = st_put_u64_field(p, 5, 1);
  new_request();
  put_bytes(1, m, (size_t)(p - m));
  CHECK(send_request());
  begin_read(f.buffer);
  expect(f.buffer, 20, 'a');
  expect(f.buffer, 20, 'b');
  expect_nothing(f.buffer);
  new_request();
  put_bytes(1, m, (size_t)(complete_end - m));
  CHECK(send_request());
  begin_read(f.buffer);
  expect(f.buffer, 20, 'c');
  expect_nothing(f.buffer);
  tear_down();
}

enum { THREADS = 4, PACKETS = 20000, LONG_FIELD = 900, LONG_SIZE = 6000 };

static struct st_arbiter arbiter;
static _Atomic int running;

/* Writes a nested message that is larger than two chunks.  Its size is sent as
 * a patch. */
static void write_long_packet(struct st_trace_writer* w, uint8_t fill) {
  uint8_t piece[LONG_SIZE / 10];
  memset(piece, fill, sizeof piece);
  struct st_message nested;
  st_message_begin_nested(st_trace_writer_begin_packet(w), &nested, LONG_FIELD);
  for (int i = 0; i < 10; i++)
    st_message_append_bytes(&nested, 1, piece, sizeof piece);
  CHECK(st_trace_writer_end_packet(w));
}

static void check_long_packet(const struct st_packet* packet) {
  struct st_decoder d;
  struct st_field field;
  st_decoder_init(&d, packet->data, packet->size);
  while (st_decoder_next(&d, &field) && field.number != LONG_FIELD)
    continue;
  CHECK_EQ(field.number, LONG_FIELD);
  CHECK_EQ(st_decoder_left(&d), 0);
  st_decoder_init(&d, field.data, field.size);
  int pieces = 0;
  for (; st_decoder_next(&d, &field); pieces++) {
    CHECK_EQ(field.size, LONG_SIZE / 10);
    for (size_t i = 0; i < field.size; i++)
      CHECK_EQ(field.data[i], field.data[0]);
  }
  CHECK_EQ(pieces, 10);
}

static void* write_packets(void* arg) {
  struct st_trace_writer w;
  CHECK(st_trace_writer_init(&w, &arbiter, BUFFER, ST_STALL));
  for (uint32_t i = 0; i < PACKETS; i++) {
    uint8_t data[300];
    memset(data, 0x50 + (int)(intptr_t)arg, sizeof data);
    struct st_iovec piece = {data, 1 + i % 299};
    if (i % 64 == 9)
      write_long_packet(&w, data[0]);
    else
      CHECK(st_trace_writer_append(&w, &piece, 1));
  }
  st_trace_writer_destroy(&w);
  atomic_fetch_sub(&running, 1);
  return NULL;
}

static uint64_t read_all(uint64_t* bytes) {
  uint64_t packets = 0;
  begin_read(f.buffer);
  while (st_trace_buffer_read_packet(f.buffer, &got)) {
    CHECK_EQ(got.loss, 0);
    packets++;
    *bytes += got.size;
    if (got.size > LONG_SIZE)
      check_long_packet(&got);
    else
      for (size_t i = 8; i < got.size; i++)
        CHECK_EQ(got.data[i], got.data[got.size - 1]);
  }
  return packets;
}

/* Runs writers, a scraper and a reader at the same time.  No packet may be lost
 * or duplicated. */
static void concurrent_writers_and_scrapes_lose_no_packet(void) {
  set_up();
  st_buffer_table_remove(f.table, BUFFER);
  f.buffer = ring(64 << 20);
  CHECK(st_buffer_table_add(f.table, BUFFER, f.buffer));
  st_producer_endpoint_set_own_shm(&f.endpoint, &f.shm);
  CHECK(st_arbiter_init(&arbiter, &f.shm, &st_in_process_sink, &f.endpoint));
  pthread_t threads[THREADS];
  atomic_store(&running, THREADS);
  for (intptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, write_packets, (void*)i));
  const uint16_t ids[] = {BUFFER};
  uint64_t packets = 0, bytes = 0;
  while (atomic_load(&running)) {
    st_producer_endpoint_scrape(&f.endpoint, ids, 1);
    packets += read_all(&bytes);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  packets += read_all(&bytes);
  CHECK_EQ(packets, THREADS * PACKETS);
  struct st_buffer_stats s = stats_of(f.buffer);
  CHECK_EQ(s.chunks_discarded + s.chunks_overwritten + s.abi_violations +
               s.patches_failed + s.sequence_packet_loss,
           0);
  CHECK_EQ(f.endpoint.stats.chunks_discarded, 0);
  st_arbiter_destroy(&arbiter);
  tear_down();
}

/* The pages that were never used can't be read here. */
static void scrape_of_own_memory_reads_only_used_pages(void) {
  set_up();
  st_producer_endpoint_set_own_shm(&f.endpoint, &f.shm);
  CHECK(st_arbiter_init(&arbiter, &f.shm, &st_in_process_sink, &f.endpoint));
  uint32_t chunk_id;
  uint16_t writer = st_arbiter_add_writer(&arbiter, BUFFER, &chunk_id);
  for (uint32_t i = 0; i < 2; i++, chunk_id++) {
    struct st_chunk c =
        st_arbiter_get_chunk(&arbiter, writer, chunk_id, 0, ST_DROP);
    memcpy(c.begin + ST_CHUNK_HEADER_SIZE, "\1a\1b", 4);
    atomic_store(&st_chunk_header(&c)->packets, 2);
  }
  CHECK_EQ(atomic_load(&f.endpoint.pages_used), 2);
  CHECK(!mprotect(f.memory + 2 * PAGE, (PAGES - 2) * PAGE, PROT_NONE));
  st_producer_endpoint_scrape(&f.endpoint, &(uint16_t){BUFFER}, 1);
  CHECK(!mprotect(f.memory, PAGES * PAGE, PROT_READ | PROT_WRITE));
  CHECK_EQ(stats_of(f.buffer).chunks_written, 2);
  st_arbiter_destroy(&arbiter);
  tear_down();
}

int main(void) {
  RUN(complete_chunks_are_moved);
  RUN(refused_chunk_is_freed);
  RUN(chunks_for_a_buffer_other_than_the_registered_one_are_discarded);
  RUN(moves_of_chunks_that_are_not_complete_are_skipped);
  RUN(ids_are_truncated_to_16_bits);
  RUN(chunks_of_any_writer_id_are_moved);
  RUN(registered_writer_may_write_to_no_other_buffer);
  RUN(patches_are_applied_after_all_moves);
  RUN(invalid_patches_are_discarded_and_counted);
  RUN(entry_with_too_many_patches_is_discarded);
  RUN(malformed_requests_are_counted);
  RUN(chunks_in_flight_are_scraped);
  RUN(scrape_of_own_memory_reads_only_used_pages);
  RUN(unregistered_writers_of_a_dead_producer_are_scraped);
  RUN(only_allowed_buffers_are_scraped);
  RUN(repeated_registrations_count_once);
  RUN(scrape_stays_inside_chunks_with_wrong_sizes);
  RUN(chunks_inside_requests_are_copied);
  RUN(concurrent_writers_and_scrapes_lose_no_packet);
  return 0;
}
