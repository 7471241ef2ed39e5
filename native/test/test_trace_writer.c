/* Tests of trace writers: fragments, patches, losses, and the packets that a
 * scraper sees. */
#include "core/trace_writer.h"

#include "check.h"
#include "chunk_reader.h"
#include "random.h"
#include "writer_model.h"

enum { PAGE = 4096, MAX_PAGES = 8, DIV1_PAYLOAD = PAGE - 16 };
static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[MAX_PAGES * PAGE];
static struct chunk_reader reader;
static struct st_arbiter arbiter;
static struct st_trace_writer writer;
static uint8_t bytes[8 * DIV1_PAYLOAD];

static void start(uint32_t pages, enum st_exhausted_policy policy) {
  struct st_shm shm;
  memset(memory, 0xAA, sizeof memory);
  for (uint32_t i = 0; i < pages; i++)
    memset(memory + i * PAGE, 0, 8);
  CHECK(st_shm_init(&shm, memory, (size_t)pages * PAGE, PAGE));
  reader_init(&reader, &shm);
  CHECK(st_arbiter_init(&arbiter, &shm, &kReaderSink, &reader));
  CHECK(st_trace_writer_init(&writer, &arbiter, 7, policy));
  /* With 0 writers the arbiter makes each page one chunk, although the memory
   * has few pages. */
  arbiter.live_writers = 0;
  filler(bytes, sizeof bytes, 1);
}

static struct {
  unsigned count;
  uint8_t data[64][32]; /* The first bytes of each of the first 64 packets. */
  size_t sizes[64];
} got;

static void collect(void* context, const uint8_t* packet, size_t size) {
  (void)context;
  unsigned i = got.count++;
  if (i >= 64)
    return;
  memcpy(got.data[i], packet, size < 32 ? size : 32);
  got.sizes[i] = size;
}

static void destroy_writer(void) {
  arbiter.live_writers = 1;
  st_trace_writer_destroy(&writer);
}

static void end(void) {
  st_arbiter_destroy(&arbiter);
  reader_destroy(&reader);
}

/* Ends the writer and reads its packets back.  Returns the number of cut
 * packets. */
static unsigned finish(void) {
  destroy_writer();
  got.count = 0;
  unsigned cut = reader_packets(&reader, writer.writer_id, collect, NULL);
  end();
  return cut;
}

static bool append(size_t size) {
  struct st_iovec piece = {bytes, size};
  return st_trace_writer_append(&writer, &piece, 1);
}

static unsigned header_packets(void) {
  return atomic_load(&st_chunk_header(&writer.chunk)->packets);
}

#define STARTS_WITH(packet, literal) \
  (memcmp(got.data[packet], literal, sizeof(literal) - 1) == 0)
#define FIRST "\xB8\x05\x01"
#define LOSS "\xD0\x02\x81\x02"

static void test_only_the_first_packet_has_first_packet_on_sequence(void) {
  start(2, ST_DROP);
  for (int i = 0; i < 32; i++) {
    struct st_message* packet = st_trace_writer_begin_packet(&writer);
    st_message_append_varint(packet, 1, (uint64_t)i);
    CHECK(st_trace_writer_end_packet(&writer));
  }
  CHECK_EQ(writer.packets_written, 32);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 32);
  CHECK_EQ(got.sizes[0], 5);
  CHECK(STARTS_WITH(0, FIRST "\x08\x00"));
  CHECK_EQ(got.sizes[31], 2);
  CHECK(STARTS_WITH(31, "\x08\x1F"));
}

static void test_chunk_has_the_expected_bytes(void) {
  start(1, ST_DROP);
  CHECK(append(4)); /* This packet has a prefix and a compacted size field. */
  uint8_t* p = st_trace_writer_reserve(&writer, 10);
  CHECK(p);
  memcpy(p, "\x08\x01", 2);
  st_trace_writer_commit(&writer, p + 2);
  struct st_message *root = st_trace_writer_begin_packet(&writer), nested;
  st_message_begin_nested(root, &nested, 11);
  st_message_append_varint(&nested, 9, 3);
  CHECK(st_trace_writer_end_packet(&writer));
  st_trace_writer_flush(&writer);
  CHECK_EQ(reader.flushes, 1);
  CHECK_EQ(reader.count, 1);
  /* The header's count includes the empty packet at the end of the chunk. */
  CHECK_EQ(reader.chunks[0].packets, 4);
  CHECK_EQ(reader.chunks[0].target_buffer, 7);
  CHECK(memcmp(reader.chunks[0].payload, "\7" FIRST, 4) == 0);
  CHECK(memcmp(reader.chunks[0].payload + 8, "\2\x08\1\4\x5A\2\x48\3\0", 9) ==
        0);
  finish();
  CHECK_EQ(got.count, 3);
}

/* Writes packets with a two-byte size, up to the size of a chunk. */
static void test_packets_with_a_two_byte_size_are_written(void) {
  start(2, ST_DROP);
  /* The writer has no chunk yet. */
  CHECK(!st_trace_writer_reserve_wide(&writer, 1));
  CHECK(append(4));
  size_t sizes[] = {1, 2, 127, 128, 300};
  for (int i = 0; i < 5; i++) {
    uint8_t* p = st_trace_writer_reserve_wide(&writer, sizes[i]);
    CHECK(p);
    memcpy(p, bytes, sizes[i]);
    st_trace_writer_commit_wide(&writer, p + sizes[i]);
  }
  size_t left = st_trace_writer_room(&writer);
  CHECK(!st_trace_writer_reserve_wide(&writer, left - 1));
  uint8_t* last = st_trace_writer_reserve_wide(&writer, left - 2);
  CHECK(last);
  memcpy(last, bytes, left - 2);
  st_trace_writer_commit_wide(&writer, last + left - 2);
  /* The chunk is full, so the writer has returned it at once. */
  CHECK_EQ(writer.chunk.size, 0);
  CHECK_EQ(writer.packets_written, 7);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 7);
  for (int i = 0; i < 5; i++)
    CHECK_EQ(got.sizes[i + 1], sizes[i]);
  CHECK_EQ(got.sizes[6], left - 2);
}

static void test_finished_packet_is_scrapable(void) {
  start(1, ST_DROP);
  st_message_append_varint(st_trace_writer_begin_packet(&writer), 1, 1);
  CHECK_EQ(header_packets(), 1);
  CHECK(st_trace_writer_end_packet(&writer));
  CHECK_EQ(header_packets(), 2);
  /* A second call of flush adds no packet. */
  CHECK(st_trace_writer_end_packet(&writer));
  CHECK_EQ(header_packets(), 2);
  CHECK_EQ(st_bitmap_state(st_page_bitmap(&reader.shm, 0), 0),
           ST_CHUNK_BEING_WRITTEN);
  uint8_t* p = st_trace_writer_reserve(&writer, 0);
  st_trace_writer_commit(&writer, p);
  CHECK_EQ(header_packets(), 3);
  finish();
}

/* Writes a packet that fills its chunk to the last byte, in each of the three
 * ways. */
static void test_full_chunk_is_returned_at_once(void) {
  for (int form = 0; form < 3; form++) {
    start(2, ST_DROP);
    size_t left = form == 0 ? 100 : 0;
    CHECK(append(DIV1_PAYLOAD - 4 - 3 - (left ? left + 1 : 900)));
    if (form == 0) {
      uint8_t* p = st_trace_writer_reserve(&writer, left);
      CHECK(p);
      memcpy(p, bytes, left);
      st_trace_writer_commit(&writer, p + left);
    } else if (form == 1) {
      CHECK(append(st_trace_writer_room(&writer) - 2));
    } else {
      size_t room = st_trace_writer_room(&writer) - ST_SIZE_FIELD;
      st_message_append_raw(st_trace_writer_begin_packet(&writer), bytes, room);
      CHECK(st_trace_writer_end_packet(&writer));
    }
    CHECK_EQ(writer.chunk.size, 0);
    CHECK_EQ(reader.count, 1);
    CHECK_EQ(reader.chunks[0].packets, 2);
    CHECK_EQ(finish(), 0);
    CHECK_EQ(got.count, 2);
  }
}

static void test_small_rest_of_a_chunk_stays_unused(void) {
  start(2, ST_DROP);
  CHECK(append(DIV1_PAYLOAD - 7 - 11));
  CHECK_EQ(st_trace_writer_room(&writer), 11);
  CHECK(append(2));
  CHECK_EQ(reader.count, 1);
  /* The header's count includes the empty packet.  No flag is set. */
  CHECK_EQ(reader.chunks[0].packets, 2);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 2);
}

static void test_packet_count_of_a_chunk_is_limited(void) {
  start(2, ST_DROP);
  for (int i = 0; i < 1021; i++)
    CHECK(append(2));
  CHECK_EQ(reader.count, 0);
  CHECK(!st_trace_writer_reserve(&writer, 2));
  CHECK(append(2));
  CHECK_EQ(reader.count, 1);
  CHECK_EQ(reader.chunks[0].packets, 1022);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 1022);
}

static void test_packet_larger_than_the_shared_memory_is_written(void) {
  start(2, ST_DROP);
  reader.free_at_once = true;
  CHECK(append(sizeof bytes));
  const uint16_t first = ST_CHUNK_FIRST_CONTINUES << ST_PACKETS_FLAGS_SHIFT;
  const uint16_t last = ST_CHUNK_LAST_CONTINUES << ST_PACKETS_FLAGS_SHIFT;
  CHECK_EQ(reader.chunks[0].packets, 1 | last);
  CHECK_EQ(reader.chunks[1].packets, 1 | first | last);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 1);
  CHECK_EQ(got.sizes[0], sizeof bytes + 3);
}

static void test_nested_sizes_become_patches(void) {
  start(4, ST_DROP);
  struct st_message *root = st_trace_writer_begin_packet(&writer), a, b;
  st_message_begin_nested(root, &a, NESTED_FIELD);
  st_message_begin_nested(&a, &b, NESTED_FIELD);
  st_message_append_bytes(&b, 2, bytes, 2 * DIV1_PAYLOAD);
  CHECK_EQ(reader.count, 2);
  const uint16_t flags = reader.chunks[0].packets >> ST_PACKETS_FLAGS_SHIFT;
  CHECK_EQ(flags, ST_CHUNK_LAST_CONTINUES | ST_CHUNK_NEEDS_PATCHING);
  CHECK_EQ(reader.chunks[1].packets >> ST_PACKETS_FLAGS_SHIFT,
           ST_CHUNK_FIRST_CONTINUES | ST_CHUNK_LAST_CONTINUES);
  st_message_finalize(&b);
  CHECK_EQ(reader.patches, 0); /* The patches are sent when the packet ends. */
  CHECK(st_trace_writer_end_packet(&writer));
  CHECK_EQ(reader.patches, 2);
  CHECK(!reader.last_has_more);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 1);
}

static void test_patches_are_sent_with_the_next_chunk(void) {
  start(4, ST_DROP);
  struct st_message *root = st_trace_writer_begin_packet(&writer), a, b;
  st_message_begin_nested(root, &a, NESTED_FIELD);
  st_message_append_bytes(&a, 2, bytes, DIV1_PAYLOAD);
  /* Opening message b finalizes message a. */
  st_message_begin_nested(root, &b, NESTED_FIELD);
  CHECK_EQ(reader.patches, 0);
  st_message_append_bytes(&b, 2, bytes, DIV1_PAYLOAD);
  CHECK_EQ(reader.patches, 1);
  CHECK(st_trace_writer_end_packet(&writer));
  CHECK_EQ(reader.patches, 2);
  CHECK_EQ(finish(), 0);
}

static void test_packet_without_a_next_chunk_is_cut_and_marked(void) {
  start(2, ST_DROP);
  CHECK(append(10));
  struct st_message *root = st_trace_writer_begin_packet(&writer), a, b;
  st_message_begin_nested(root, &a, NESTED_FIELD);
  /* The packet continues in chunk 1. */
  st_message_append_bytes(&a, 2, bytes, DIV1_PAYLOAD);
  st_message_begin_nested(&a, &b, NESTED_FIELD);
  /* No chunk is left for the packet. */
  st_message_append_bytes(&b, 2, bytes, DIV1_PAYLOAD);
  CHECK_EQ(reader.count, 2);
  CHECK_EQ(reader.chunks[1].packets,
           1 | ST_CHUNK_FIRST_CONTINUES << ST_PACKETS_FLAGS_SHIFT);
  CHECK(memcmp(reader.chunks[1].payload, "\xFF\xFF\xFF\x7F", 4) == 0);
  /* The bytes of a lost packet are discarded. */
  st_message_append_varint(&b, 1, 1);
  CHECK(!st_trace_writer_end_packet(&writer));
  CHECK_EQ(writer.packets_dropped, 1);
  CHECK_EQ(writer.drop_count, 1);
  /* The only patch belongs to chunk 0, which must become readable. */
  CHECK_EQ(reader.patches, 1);
  CHECK(!append(3));
  CHECK(!st_trace_writer_reserve(&writer, 0));
  /* The writer is still in drop mode, so the further loss adds nothing. */
  CHECK_EQ(writer.drop_count, 1);
  CHECK_EQ(writer.packets_dropped, 2);
  CHECK(reader_free_one(&reader));
  CHECK(append(3));
  CHECK(append(3));
  CHECK_EQ(writer.chunk_id, 2); /* Dropped packets use no chunk ids. */
  CHECK_EQ(finish(), 1);
  CHECK_EQ(got.count, 3);
  CHECK(STARTS_WITH(0, FIRST));
  CHECK(STARTS_WITH(1, LOSS));
  CHECK(!STARTS_WITH(1, LOSS FIRST));
  CHECK_EQ(got.sizes[2], 3);
}

static void test_each_loss_is_marked_once(void) {
  start(1, ST_DROP);
  for (unsigned i = 1; i <= 3; i++) {
    CHECK(append(5));
    st_trace_writer_flush(&writer);
    CHECK(!append(5));
    CHECK(!append(5));
    st_trace_writer_flush(&writer);
    CHECK_EQ(writer.drop_count, i);
    CHECK(reader_free_one(&reader));
  }
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 3);
  CHECK(STARTS_WITH(1, LOSS));
  CHECK(STARTS_WITH(2, LOSS));
}

static void test_lost_first_packet_is_marked_by_the_next(void) {
  start(1, ST_DROP);
  struct st_chunk taken = st_arbiter_get_chunk(&arbiter, 99, 0, 1, ST_DROP);
  CHECK(!append(5));
  st_arbiter_return_chunk(&arbiter, &taken, 1);
  CHECK(reader_free_one(&reader));
  CHECK(append(5));
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 1);
  CHECK(STARTS_WITH(0, LOSS FIRST));
}

static void test_too_large_packets_are_dropped(void) {
  start(2, ST_DROP);
  reader.free_at_once = true;
  CHECK(append(3));
  struct st_iovec piece = {memory, ST_MAX_PACKET_SIZE + (size_t)1};
  CHECK(!st_trace_writer_append(&writer, &piece, 1));
  piece.size = SIZE_MAX;
  struct st_iovec both[] = {piece, piece};
  CHECK(!st_trace_writer_append(&writer, both, 2));
  CHECK(append(3));
  struct st_message* root = st_trace_writer_begin_packet(&writer);
  for (size_t n = 0; n <= ST_MAX_PACKET_SIZE; n += sizeof bytes)
    st_message_append_bytes(root, 2, bytes, sizeof bytes);
  CHECK(!st_trace_writer_end_packet(&writer));
  CHECK(append(3));
  CHECK_EQ(writer.packets_dropped, 3);
  CHECK_EQ(writer.drop_count, 2);
  CHECK_EQ(finish(), 1);
  CHECK_EQ(got.count, 3);
  CHECK(STARTS_WITH(1, LOSS));
  CHECK(STARTS_WITH(2, LOSS));
}

/* The chunk that the lost packet had already taken is used for the next
 * packet. */
static void test_too_large_packet_with_open_messages_is_dropped(void) {
  start(3, ST_DROP);
  reader.free_at_once = true;
  struct st_message *root = st_trace_writer_begin_packet(&writer), a;
  for (size_t n = 0; n <= ST_MAX_PACKET_SIZE; n += 1000) {
    st_message_begin_nested(root, &a, NESTED_FIELD);
    st_message_append_bytes(&a, 2, bytes, 1000);
  }
  CHECK(!st_trace_writer_end_packet(&writer));
  /* The flags of the chunk no longer say that it continues a packet. */
  CHECK_EQ(header_packets(), 1);
  CHECK(append(3));
  CHECK_EQ(finish(), 1);
  CHECK_EQ(got.count, 1);
  CHECK(STARTS_WITH(0, LOSS FIRST));
}

static void test_too_large_field_drops_the_packet(void) {
  start(1, ST_DROP);
  CHECK(append(3));
  struct st_message* root = st_trace_writer_begin_packet(&writer);
  /* The sizes are volatile, because gcc 16 warns of constant sizes that are too
   * large. */
  volatile size_t large = ST_MAX_MESSAGE_SIZE;
  st_message_append_bytes(root, 2, bytes, large);
  CHECK(!st_trace_writer_end_packet(&writer));
  CHECK_EQ(writer.packets_dropped, 1);
  CHECK(reader_free_one(&reader));
  CHECK(append(3));
  CHECK_EQ(finish(), 1);
  CHECK_EQ(got.count, 2);
}

static unsigned sleeps;
static void fake_sleep(uint32_t us) {
  (void)us;
  sleeps++;
}

static void test_stall_then_drop_policy_stalls_once_per_loss(void) {
  start(1, ST_STALL_THEN_DROP);
  arbiter.wait_hooks.sleep_us = fake_sleep;
  sleeps = 0;
  CHECK(append(3));
  st_trace_writer_flush(&writer);
  CHECK(!append(3));
  CHECK_EQ(sleeps, 300);
  CHECK(!append(3)); /* In drop mode the writer does not wait for a chunk. */
  CHECK_EQ(sleeps, 300);
  CHECK(reader_free_one(&reader));
  CHECK(append(3));
  st_trace_writer_flush(&writer);
  CHECK(!append(3)); /* The writer has left drop mode, so it waits again. */
  CHECK_EQ(sleeps, 600);
  finish();
}

static void test_stalling_writer_waits_for_the_reader(void) {
  start(4, ST_STALL_THEN_DROP);
  arbiter.wait_hooks.sleep_us = fake_sleep;
  sleeps = 0;
  reader.behind = 5;
  struct st_iovec piece = {bytes, 100};
  CHECK(st_trace_writer_append(&writer, &piece, 1));
  CHECK_EQ(sleeps, 5);
  reader.behind = 1000; /* The stall has a limit, so the writer continues. */
  for (int i = 0; i < 60; i++)
    CHECK(st_trace_writer_append(&writer, &piece, 1));
  CHECK_EQ(sleeps, 305);
  reader.behind = 0;
  finish();
}

static void test_writer_with_drop_policy_does_not_wait_for_the_reader(void) {
  start(4, ST_DROP);
  arbiter.wait_hooks.sleep_us = fake_sleep;
  sleeps = 0;
  reader.behind = 1000;
  struct st_iovec piece = {bytes, 100};
  CHECK(st_trace_writer_append(&writer, &piece, 1));
  CHECK_EQ(sleeps, 0);
  finish();
}

static void sleep_and_free(uint32_t us) {
  fake_sleep(us);
  CHECK(reader_free_one(&reader));
}

/* A writer that has a chunk is no longer in drop mode. */
static void test_packet_after_the_end_of_drop_mode_may_stall(void) {
  start(2, ST_STALL_THEN_DROP);
  arbiter.wait_hooks.sleep_us = fake_sleep;
  CHECK(append(DIV1_PAYLOAD));
  st_trace_writer_flush(&writer);
  CHECK(!append(3));
  CHECK(reader_free_one(&reader));
  arbiter.wait_hooks.sleep_us = sleep_and_free;
  sleeps = 0;
  CHECK(append(DIV1_PAYLOAD));
  CHECK_EQ(sleeps, 1);
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 2);
}

static void test_ensure_room_takes_a_chunk_or_reports_a_loss(void) {
  start(2, ST_DROP);
  CHECK(append(DIV1_PAYLOAD - 100));
  CHECK(st_trace_writer_ensure_room(&writer, 50));
  CHECK_EQ(reader.count, 0);
  CHECK(st_trace_writer_ensure_room(&writer, 200));
  CHECK_EQ(reader.count, 1);
  CHECK_EQ(st_trace_writer_room(&writer), DIV1_PAYLOAD);
  CHECK(!st_trace_writer_ensure_room(&writer, PAGE));
  CHECK(!append(3)); /* Both chunks are complete and wait for the service. */
  CHECK_EQ(writer.drop_count, 1);
  CHECK(reader_free_one(&reader));
  CHECK(append(3));
  finish();
  CHECK(STARTS_WITH(1, LOSS));
}

/* Each call ends an open streamed packet first. */
static void test_other_calls_end_the_open_packet(void) {
  start(2, ST_DROP);
  struct st_message nested;
  for (int i = 0; i < 4; i++) {
    struct st_message* root = st_trace_writer_begin_packet(&writer);
    st_message_begin_nested(root, &nested, NESTED_FIELD);
    st_message_append_varint(&nested, 1, 1);
    CHECK(!st_trace_writer_reserve(&writer, 3));
    if (i == 0)
      CHECK(append(3));
    if (i == 1)
      st_trace_writer_flush(&writer);
    if (i == 2)
      CHECK(st_trace_writer_ensure_room(&writer, 20));
    if (i != 3)
      CHECK(nested.finalized);
  }
  CHECK_EQ(finish(), 0);
  CHECK_EQ(got.count, 5);
  CHECK(STARTS_WITH(4, "\x1A\x02\x08\x01"));
}

static void test_next_owner_of_a_writer_id_continues_its_chunk_ids(void) {
  start(2, ST_DROP);
  CHECK(append(3));
  uint32_t chunk_id = 9;
  destroy_writer();
  arbiter.last_writer_id = 0;
  CHECK_EQ(st_arbiter_add_writer(&arbiter, 7, &chunk_id), 1);
  CHECK_EQ(chunk_id, 1);
  end();
}

static void test_writer_is_disabled_in_a_forked_child(void) {
  start(4, ST_DROP);
  CHECK(append(30));
  struct st_message *root = st_trace_writer_begin_packet(&writer), a, b;
  st_message_begin_nested(root, &a, NESTED_FIELD);
  st_message_append_bytes(&a, 2, bytes, DIV1_PAYLOAD);
  st_message_begin_nested(&a, &b, NESTED_FIELD);
  static uint8_t parents[sizeof memory];
  memcpy(parents, memory, sizeof memory);
  st_arbiter_disable(&arbiter);
  st_trace_writer_disable_after_fork(&writer);
  st_message_append_varint(&b, 1, 1);
  CHECK(!st_trace_writer_end_packet(&writer));
  CHECK(!append(3));
  CHECK(!st_trace_writer_reserve(&writer, 3));
  st_trace_writer_flush(&writer);
  CHECK(memcmp(parents, memory, sizeof memory) == 0);
  destroy_writer();
  end();
}

/* ThreadSanitizer finds nothing in one thread, and makes the scripts ten times as slow. */
#ifdef __SANITIZE_THREAD__
enum { SCRIPTS = 10 };
#else
enum { SCRIPTS = 300 };
#endif

static void test_random_scripts_match_the_model(void) {
  static uint8_t script[20000];
  uint64_t state = 4711;
  for (int i = 0; i < SCRIPTS; i++) {
    random_fill(&state, script, sizeof script);
    run_model(script, random_below(&state, sizeof script));
  }
}

int main(void) {
  RUN(test_only_the_first_packet_has_first_packet_on_sequence);
  RUN(test_chunk_has_the_expected_bytes);
  RUN(test_packets_with_a_two_byte_size_are_written);
  RUN(test_finished_packet_is_scrapable);
  RUN(test_full_chunk_is_returned_at_once);
  RUN(test_small_rest_of_a_chunk_stays_unused);
  RUN(test_packet_count_of_a_chunk_is_limited);
  RUN(test_packet_larger_than_the_shared_memory_is_written);
  RUN(test_nested_sizes_become_patches);
  RUN(test_patches_are_sent_with_the_next_chunk);
  RUN(test_packet_without_a_next_chunk_is_cut_and_marked);
  RUN(test_each_loss_is_marked_once);
  RUN(test_lost_first_packet_is_marked_by_the_next);
  RUN(test_too_large_packets_are_dropped);
  RUN(test_too_large_packet_with_open_messages_is_dropped);
  RUN(test_too_large_field_drops_the_packet);
  RUN(test_stall_then_drop_policy_stalls_once_per_loss);
  RUN(test_packet_after_the_end_of_drop_mode_may_stall);
  RUN(test_ensure_room_takes_a_chunk_or_reports_a_loss);
  RUN(test_other_calls_end_the_open_packet);
  RUN(test_next_owner_of_a_writer_id_continues_its_chunk_ids);
  RUN(test_writer_is_disabled_in_a_forked_child);
  RUN(test_random_scripts_match_the_model);
  RUN(test_stalling_writer_waits_for_the_reader);
  RUN(test_writer_with_drop_policy_does_not_wait_for_the_reader);
  return 0;
}
