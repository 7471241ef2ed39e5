/* Events written from blocks: byte for byte what the general way writes. */
#include "core/track_event.h"

#include "check.h"
#include "chunk_reader.h"
#include "core/fields.h"

enum { PAGE = 4096, PAGES = 4, MOST = 4096 };

struct bytes {
  uint8_t data[MOST];
  size_t size;
};

static void append(void* context, const uint8_t* p, size_t size) {
  struct bytes* all = context;
  CHECK(all->size + size <= MOST);
  memcpy(all->data + all->size, p, size);
  all->size += size;
}

struct call {
  uint64_t begin, end;
  uint32_t category, name, location;
};

static const struct call kCalls[] = {
    {1000, 1001, 1, 2, 3},
    {1002, 99999999, 127, 128, 16383},
    {99999999, 1u << 30, 4096, 4096, 2097151},
};

static bool write_blocks(struct st_sequence* s, const struct call* c) {
  struct st_event_block begin;
  return st_make_call_block(&begin, c->category, c->name, c->location) &&
         st_sequence_write_block(s, c->begin, &begin) &&
         st_sequence_write_block(s, c->end, &st_end_block);
}

static bool write_events(struct st_sequence* s, const struct call* c) {
  uint8_t field[8];
  uint8_t* end = st_put_u64_field(
      field, ST_FIELD_TRACK_EVENT_SOURCE_LOCATION_IID, c->location);
  struct st_event event = {.type = ST_SLICE_BEGIN,
                           .timestamp = c->begin,
                           .category_iid = c->category,
                           .name_iid = c->name,
                           .fields = field,
                           .fields_size = (size_t)(end - field)};
  return st_sequence_write(s, &event) &&
         st_sequence_write_small(s, ST_SLICE_END, c->end, 0, 0, 0);
}

/* The packets of all calls, without those of the state (it has the time). */
static struct bytes record(bool (*write)(struct st_sequence*,
                                         const struct call*)) {
  static _Alignas(ST_MIN_PAGE_SIZE) uint8_t memory[PAGES * PAGE];
  memset(memory, 0, sizeof memory);
  struct st_shm shm;
  struct chunk_reader reader;
  struct st_arbiter arbiter;
  struct st_sequence s;
  static const uint8_t kDescriptor[] = {0x08, 0x2A};
  static const struct st_track kThread = {42, kDescriptor, 2, NULL};
  CHECK(st_shm_init(&shm, memory, sizeof memory, PAGE));
  reader_init(&reader, &shm);
  CHECK(st_arbiter_init(&arbiter, &shm, &kReaderSink, &reader));
  CHECK(st_sequence_init(&s, &arbiter, 7, ST_DROP, &kThread));
  CHECK(st_sequence_prepare(&s, 1000, ST_EVENT_ROOM));
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; i++)
    CHECK(write(&s, &kCalls[i]));
  CHECK_EQ(s.events_written, 2 * sizeof kCalls / sizeof *kCalls);
  st_sequence_destroy(&s);
  struct bytes all = {.size = 0};
  struct packet_in_progress packet = {0};
  const struct chunk_copy* c = &reader.chunks[0];
  read_fragments(c, c->packets & ST_PACKETS_COUNT_MASK, &packet, append, &all);
  free(packet.data);
  st_arbiter_destroy(&arbiter);
  reader_destroy(&reader);
  return all;
}

static void Block_IsTheSameEvent(void) {
  struct bytes blocks = record(write_blocks);
  struct bytes events = record(write_events);
  CHECK(blocks.size > 60);
  CHECK_EQ(blocks.size, events.size);
  CHECK(memcmp(blocks.data, events.data, blocks.size) == 0);
}

static void Block_HasALimit(void) {
  struct st_event_block block;
  CHECK(st_make_call_block(&block, UINT32_MAX, UINT32_MAX, 1));
  CHECK(!st_make_call_block(&block, UINT32_MAX, UINT32_MAX, UINT32_MAX));
}

static void Block_NeedsAnAnnouncedStateAndTimeInOrder(void) {
  struct st_sequence s;
  memset(&s, 0, sizeof s);
  CHECK(!st_sequence_write_block(&s, 5, &st_end_block));
  s.state_valid = true;
  s.last_timestamp = 6;
  CHECK(!st_sequence_write_block(&s, 5, &st_end_block));
}

int main(void) {
  RUN(Block_IsTheSameEvent);
  RUN(Block_HasALimit);
  RUN(Block_NeedsAnAnnouncedStateAndTimeInOrder);
  return 0;
}
