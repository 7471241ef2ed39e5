/* Tests of commit requests: chunks inside requests under emulation, and chunks
 * that are patched before they are sent. */
#include "commit_service.h"

enum { PAGES = 8, PAGE_SIZE = 4096, BIG_QUEUE = 1 << 20 };

static _Alignas(4096) uint8_t g_memory[PAGES * PAGE_SIZE];
static struct st_shm g_shm;

static void open_memory(bool emulated, bool scrapable) {
  memset(g_memory, 0, sizeof g_memory);
  CHECK(st_shm_init(&g_shm, g_memory, sizeof g_memory, PAGE_SIZE));
  g_have = g_used = 0;
  g_pair = socket_pair_open();
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, BIG_QUEUE));
  CHECK(st_commit_batch_init(&g_batch, &g_queue, &kMethods, 0));
  if (emulated)
    CHECK(st_commit_batch_emulate(&g_batch, &g_shm, scrapable));
  else
    st_commit_batch_patch_directly(&g_batch, &g_shm);
}

/* Makes a chunk of writer 9 with two packets.  The second packet is not
 * finished. */
static struct st_chunk write_chunk(uint32_t page, uint32_t chunk_id,
                                   uint16_t flags) {
  struct st_chunk chunk;
  uint16_t packets = (uint16_t)(2 | flags << ST_PACKETS_FLAGS_SHIFT);
  CHECK(st_page_try_partition(&g_shm, page, ST_PAGE_DIV1));
  CHECK(st_chunk_try_acquire_for_writing(&g_shm, page, 0, 9, chunk_id, packets,
                                         &chunk));
  memcpy(chunk.begin + ST_CHUNK_HEADER_SIZE, "\3one\3two", 8);
  return chunk;
}

static void complete_chunk(const struct st_chunk* chunk) {
  CHECK(st_chunk_release_as_complete(&g_shm, chunk));
  st_commit_batch_sink.chunk_complete(&g_batch, chunk, 3);
}

static enum st_chunk_state state_of(uint32_t page) {
  return st_bitmap_state(st_page_bitmap(&g_shm, page), 0);
}

/* Reads the next request, whose only move contains a chunk. */
struct data_move {
  struct st_chunk_header header;
  uint64_t target, incomplete;
  const uint8_t* payload;
  size_t size;
};

static void parse_data_move(const struct st_field* f, struct data_move* m) {
  struct st_decoder d;
  struct st_field part;
  st_decoder_init(&d, f->data, f->size);
  while (st_decoder_next(&d, &part)) {
    if (part.number == 3)
      m->target = part.value;
    if (part.number == 5)
      m->incomplete = part.value;
    if (part.number != 4)
      continue;
    CHECK(part.size > sizeof m->header);
    memcpy((void*)&m->header, part.data, sizeof m->header);
    m->payload = part.data + sizeof m->header;
    m->size = part.size;
  }
}

static bool next_data(struct data_move* m, uint64_t* flush_id) {
  struct st_ipc_invoke invoke;
  memset(m, 0, sizeof *m);
  *flush_id = 0;
  if (!next_frame(&invoke))
    return false;
  CHECK_EQ(invoke.method_id, COMMIT);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, invoke.args, invoke.args_size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == 1)
      parse_data_move(&f, m);
    if (f.number == 3)
      *flush_id = f.value;
  }
  CHECK_EQ(st_decoder_left(&d), 0);
  return true;
}

static void emulated_chunks_are_sent_inside_requests(void) {
  struct data_move m;
  uint64_t flush_id;
  open_memory(true, false);
  struct st_chunk chunk = write_chunk(1, 77, 0);
  complete_chunk(&chunk);
  CHECK_EQ(st_page_bitmap(&g_shm, 1), 0); /* The chunk becomes free at once. */
  CHECK(next_data(&m, &flush_id));
  CHECK_EQ(m.header.chunk_id, 77);
  CHECK_EQ(m.header.writer_id, 9);
  CHECK_EQ(m.header.packets, 2);
  CHECK_EQ(m.target, 3);
  CHECK_EQ(m.incomplete, 0);
  CHECK_EQ(m.size, 4088);
  CHECK_EQ(memcmp(m.payload, "\3one\3two", 8), 0);
  expect_nothing();
  close_batch();
}

static void emulated_chunks_stay_pending_while_the_queue_is_full(void) {
  struct data_move m;
  uint64_t flush_id;
  open_memory(true, false);
  block_queue();
  for (uint32_t page = 0; page < PAGES; page++) {
    struct st_chunk chunk = write_chunk(page, page, 0);
    complete_chunk(&chunk);
    CHECK_EQ(state_of(page), ST_CHUNK_COMPLETE);
  }
  st_commit_batch_notify_flush_complete(&g_batch, 5);
  unblock_queue();
  CHECK(next_data(&m, &flush_id));
  CHECK_EQ(flush_id, 5);
  /* One request contains all of the chunks. */
  CHECK_EQ(m.header.chunk_id, PAGES - 1);
  for (uint32_t page = 0; page < PAGES; page++)
    CHECK_EQ(st_page_bitmap(&g_shm, page), 0);
  close_batch();
}

static void emulated_requests_fit_into_a_frame(void) {
  enum { MANY = 64 };
  static _Alignas(4096) uint8_t memory[MANY * PAGE_SIZE];
  uint64_t flush_id = 0;
  struct st_ipc_invoke invoke;
  open_memory(true, false);
  CHECK(st_shm_init(&g_shm, memory, sizeof memory, PAGE_SIZE));
  block_queue();
  for (uint32_t page = 0; page < MANY; page++) {
    struct st_chunk chunk = write_chunk(page, page, 0);
    complete_chunk(&chunk);
  }
  st_commit_batch_notify_flush_complete(&g_batch, 5);
  unblock_queue();
  unsigned moves = 0, requests = 0;
  while (next_frame(&invoke)) {
    struct st_decoder d;
    struct st_field f;
    CHECK(invoke.args_size <= 128 * 1024 - 512);
    CHECK_EQ(flush_id, 0); /* The acknowledgement of the flush comes last. */
    requests++;
    st_decoder_init(&d, invoke.args, invoke.args_size);
    while (st_decoder_next(&d, &f)) {
      moves += f.number == 1;
      flush_id = f.number == 3 ? f.value : flush_id;
    }
  }
  CHECK_EQ(moves, MANY);
  CHECK_EQ(requests, 3);
  CHECK_EQ(flush_id, 5);
  close_batch();
}

static void flush_sends_finished_fragments_of_unfinished_chunks(void) {
  struct data_move m;
  uint64_t flush_id;
  open_memory(true, true);
  st_commit_batch_sink.register_writer(&g_batch, 9, 3);
  expect_writer(REGISTER, 9, 3);
  struct st_chunk chunk = write_chunk(2, 77, 0);
  st_commit_batch_notify_flush_complete(&g_batch, 5);
  CHECK(next_data(&m, &flush_id));
  CHECK_EQ(m.incomplete, 1);
  CHECK_EQ(m.target, 3);
  CHECK_EQ(m.header.chunk_id, 77);
  CHECK_EQ(m.header.packets, 2);
  CHECK_EQ(m.size, 4088);
  /* The copy does not contain the second packet, which is not finished. */
  CHECK_EQ(memcmp(m.payload, "\3one\0\0\0\0", 8), 0);
  CHECK_EQ(flush_id, 0);
  CHECK(next_data(&m, &flush_id));
  CHECK_EQ(flush_id, 5);
  CHECK_EQ(state_of(2), ST_CHUNK_BEING_WRITTEN);
  complete_chunk(&chunk);
  CHECK(next_data(&m, &flush_id));
  CHECK_EQ(m.incomplete, 0);
  expect_nothing();
  close_batch();
}

static void flush_skips_unfinished_chunks_without_a_buffer_or_permission(void) {
  struct data_move m;
  uint64_t flush_id;
  for (int scrapable = 0; scrapable < 2; scrapable++) {
    open_memory(true, scrapable);
    write_chunk(2, 77, 0); /* Writes a chunk of an unregistered writer. */
    if (!scrapable) {
      st_commit_batch_sink.register_writer(&g_batch, 9, 3);
      expect_writer(REGISTER, 9, 3);
    }
    st_commit_batch_notify_flush_complete(&g_batch, 5);
    CHECK(next_data(&m, &flush_id));
    CHECK_EQ(m.size, 0);
    CHECK_EQ(flush_id, 5);
    close_batch();
  }
}

/* Hands a chunk over to the sink, as the arbiter does.  The chunk needs
 * patches. */
static void hand_over_unpatched(const struct st_chunk* chunk) {
  CHECK(st_commit_batch_sink.chunk_unpatched(&g_batch, chunk, 3));
}

static uint32_t flags_of(const struct st_chunk* chunk) {
  return st_chunk_header(chunk)->packets >> ST_PACKETS_FLAGS_SHIFT;
}

static void early_patches_are_written_into_the_chunk(void) {
  struct request r;
  open_memory(false, false);
  block_queue();
  struct st_chunk chunk = write_chunk(0, 77, ST_CHUNK_NEEDS_PATCHING);
  hand_over_unpatched(&chunk);
  CHECK_EQ(state_of(0), ST_CHUNK_BEING_WRITTEN);
  patch(77, 1, true);
  CHECK_EQ(memcmp(chunk.begin + ST_CHUNK_HEADER_SIZE, "\x81\x80\x80\0", 4), 0);
  CHECK_EQ(flags_of(&chunk), ST_CHUNK_NEEDS_PATCHING);
  CHECK_EQ(state_of(0), ST_CHUNK_BEING_WRITTEN);
  patch(77, 1, false);
  CHECK_EQ(flags_of(&chunk), 0);
  CHECK_EQ(state_of(0), ST_CHUNK_COMPLETE);
  unblock_queue();
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  CHECK_EQ(r.patches, 0);
  expect_nothing();
  close_batch();
}

static void late_patches_are_sent_to_the_service(void) {
  struct request r;
  open_memory(false, false);
  struct st_chunk chunk = write_chunk(0, 77, ST_CHUNK_NEEDS_PATCHING);
  /* The send queue has room, so the chunk is sent at once. */
  hand_over_unpatched(&chunk);
  CHECK_EQ(state_of(0), ST_CHUNK_COMPLETE);
  CHECK_EQ(flags_of(&chunk), ST_CHUNK_NEEDS_PATCHING);
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  patch(77, 1, false);
  CHECK(next_commit(&r));
  CHECK_EQ(r.patches, 1);
  close_batch();
}

static void patches_of_another_chunk_do_not_change_it(void) {
  struct request r;
  open_memory(false, false);
  block_queue();
  struct st_chunk chunk = write_chunk(0, 77, ST_CHUNK_NEEDS_PATCHING);
  hand_over_unpatched(&chunk);
  patch(76, 1, false);
  CHECK_EQ(memcmp(chunk.begin + ST_CHUNK_HEADER_SIZE, "\3one", 4), 0);
  unblock_queue();
  CHECK(next_commit(&r));
  CHECK_EQ(r.moves, 1);
  CHECK_EQ(r.patches, 1);
  CHECK_EQ(state_of(0), ST_CHUNK_COMPLETE);
  close_batch();
}

static void chunk_that_needs_patches_is_not_kept_without_direct_patching(void) {
  struct st_chunk chunk = {0};
  open_batch(0);
  CHECK(!st_commit_batch_sink.chunk_unpatched(&g_batch, &chunk, 3));
  close_batch();
}

int main(void) {
  RUN(emulated_chunks_are_sent_inside_requests);
  RUN(emulated_chunks_stay_pending_while_the_queue_is_full);
  RUN(emulated_requests_fit_into_a_frame);
  RUN(flush_sends_finished_fragments_of_unfinished_chunks);
  RUN(flush_skips_unfinished_chunks_without_a_buffer_or_permission);
  RUN(early_patches_are_written_into_the_chunk);
  RUN(late_patches_are_sent_to_the_service);
  RUN(patches_of_another_chunk_do_not_change_it);
  RUN(chunk_that_needs_patches_is_not_kept_without_direct_patching);
  return 0;
}
